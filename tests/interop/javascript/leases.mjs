// leases.mjs - what the processors of both clients are told, and the checkpoints that they leave.
import { load, stand } from "./frame.mjs";

export const HUB = "processor", GROUP = "cg1", CONTAINER = "checkpoints";
export const EVERY = 50; // events of a partition between two checkpoints

// The newer client keeps a blob for each, with the sequence number in its metadata.
async function newCheckpoints() {
  const { ContainerClient } = load("@azure/storage-blob");
  const found = {};
  for await (const blob of new ContainerClient(stand("BLOB"), CONTAINER).listBlobsFlat({ includeMetadata: true })) {
    const partition = /\/checkpoint\/(\d+)$/.exec(blob.name)?.[1];
    if (partition) found[partition] = Number(blob.metadata.sequencenumber);
  }
  return found;
}

// The older one keeps lease and checkpoint in one blob, as JSON.
async function oldCheckpoints() {
  const service = load("azure-storage").createBlobService(stand("BLOB"));
  const read = (partition) => new Promise((resolve, reject) =>
    service.getBlobToText(CONTAINER, `${GROUP}/${partition}`, (error, text) => (error ? reject(error) : resolve(text))));
  const found = {};
  for (const partition of ["0", "1", "2", "3"]) found[partition] = JSON.parse(await read(partition)).sequenceNumber;
  return found;
}

// Partitions and the sequence numbers of their checkpoints.
export const checkpoints = (id) => (id === "js" ? newCheckpoints() : oldCheckpoints());
