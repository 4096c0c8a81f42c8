// body.mjs - annotated messages: every section, and every kind of body.
import { check, load, same } from "./frame.mjs";

// Without those of the service.
const own = (annotations) =>
  Object.fromEntries(Object.entries(annotations).filter(([name]) => !name.startsWith("x-opt-")));

// Sends messages, each alone and then all in one batch, and gives what comes back of them.
async function exchange(messages, send, reader) {
  for (const message of messages) await send([message]);
  await send(messages);
  return reader.has(2 * messages.length);
}

async function newExchange(client, messages) {
  const producer = client.producer();
  const got = await exchange(messages, (list) => producer.send(list, { partition: "0" }), client.reader({ partition: "0" }));
  return got.map(({ body, event }) => ({ ...event.getRawAmqpMessage(), body }));
}

// The older client has no annotated messages. Its events have all the sections but the delivery
// annotations and the footer, and a data transformer makes any body.
async function oldExchange(client, events, encode) {
  const transformer = { encode, decode: (body) => body };
  const { client: producer } = client.producer({}, client.hub, { dataTransformer: transformer });
  const send = (list) => (list.length === 1 ? producer.send(list[0], "0") : producer.sendBatch(list, "0"));
  return (await exchange(events, send, client.reader({ partition: "0", transformer }))).map(({ event }) => event);
}

const annotations = { "x-own": "m", "x-number": 7 };
const applicationProperties = { a: 1, b: "two" };

function checkHeader(header) {
  check(!header?.priority || header.priority === 3, `header: ${JSON.stringify(header)}`);
  return `header ${header?.priority ? "kept" : "dropped"}`;
}

async function newAnnotated(client) {
  const sent = {
    header: { durable: true, priority: 3, timeToLive: 600000 },
    deliveryAnnotations: { "x-delivery": "d" }, messageAnnotations: annotations, applicationProperties,
    properties: {
      messageId: "id", to: "to", subject: "subject", replyTo: "reply", correlationId: "correlation",
      contentType: "type", contentEncoding: "encoding", groupId: "group", groupSequence: 7, replyToGroupId: "back",
    },
    footer: { "x-foot": "f" }, body: Buffer.from([0, 1, 255]), bodyType: "data",
  };
  let text;
  for (const got of await newExchange(client, [sent, sent])) {
    same("body", [got.bodyType, [...got.body]], ["data", [0, 1, 255]]);
    for (const [name, value] of Object.entries(sent.properties)) same(name, got.properties[name], value);
    same("annotations", own(got.messageAnnotations), annotations);
    for (const name of ["deliveryAnnotations", "applicationProperties", "footer"]) same(name, { ...got[name] }, sent[name]);
    text = `${checkHeader(got.header)}; one part of data, the client makes no more`;
  }
  return { text };
}

async function oldAnnotated(client) {
  const properties = {
    message_id: "id", to: "to", subject: "subject", reply_to: "reply", correlation_id: "correlation",
    content_type: "type", content_encoding: "encoding", group_id: "group", group_sequence: 7, reply_to_group_id: "back",
  };
  const sent = () => ({
    header: { durable: true, priority: 3, ttl: 600000 }, annotations: { ...annotations }, properties,
    applicationProperties, body: [Buffer.from("one"), Buffer.from("two")],
  });
  let text;
  for (const got of await oldExchange(client, [sent(), sent()], load("rhea-promise").message.data_sections)) {
    same("body", got.body.content.map(String), ["one", "two"]);
    same("properties", { ...got.properties }, properties);
    same("annotations", own(got.annotations), annotations);
    same("application properties", { ...got.applicationProperties }, applicationProperties);
    text = `${checkHeader(got.header)}; its events have no delivery annotations and no footer`;
  }
  return { text };
}

const annotated = (client) => (client.id === "js" ? newAnnotated(client) : oldAnnotated(client));

async function bodyValue(client) {
  const values = ["text", -7, true, { a: [1, "two", null, true], b: 2 ** 40 }];
  const got = client.id === "js" ? await newExchange(client, values.map((body) => ({ body, bodyType: "value" })))
    : await oldExchange(client, values.map((body) => ({ body })), (value) => value);
  if (client.id === "js") same("types", new Set(got.map((each) => each.bodyType)), new Set(["value"]));
  same("bodies", got.map((each) => each.body), [...values, ...values]);
}

// The newer client makes one list of a sequence, the older one any number.
async function bodySequence(client) {
  const list = [1, "two", null, [true, false]];
  if (client.id === "js") {
    const got = await newExchange(client, [{ body: list, bodyType: "sequence" }, { body: [7], bodyType: "sequence" }]);
    same("types", new Set(got.map((each) => each.bodyType)), new Set(["sequence"]));
    return same("bodies", got.map((each) => each.body), [list, [7], list, [7]]);
  }
  const events = [{ body: [list, [3]] }, { body: [[7], list] }];
  const got = await oldExchange(client, events, load("rhea-promise").message.sequence_sections);
  return same("bodies", got.map((each) => each.body.content), [...events, ...events].map(({ body }) => body));
}

export const cases = { annotated, "body-value": bodyValue, "body-sequence": bodySequence };
