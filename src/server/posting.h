/* posting.h - events as HTTP carries them, made into a batch.
 *
 *   one event    the body is its data; Content-Type its content type; the field BrokerProperties, a
 *                JSON object, has its partition key, message id and so on; every other field that
 *                HTTP does not know is a property of its own, a string
 *   several      Content-Type: application/vnd.microsoft.servicebus.json, the body
 *                [{"Body":"...","UserProperties":{...},"BrokerProperties":{...}},...]; fields of
 *                the request are not looked at
 *
 * Properties in JSON keep their kind: text, numbers (whole ones as long, others as double), true,
 * false and null. Members of BrokerProperties that are not in the table of posting.c are passed
 * over, as Azure does. All events of a batch must have the same partition key, or none: they go to
 * one partition. Pure. */
#ifndef WEIR_SERVER_POSTING_H
#define WEIR_SERVER_POSTING_H

#include "http/head.h"
#include "hub/batch.h"

#define WEIR__POSTING_PROPERTIES_MAX 256 /* of one event: WEIR_EINVAL */

/* writer was initialised, and is filled. WEIR_EINVAL says which event and what is wrong with it;
 * WEIR_ETOOBIG: they are larger than a batch may be. */
int weir__posting_read(struct weir__batch_writer *, const struct weir__http_request *,
                       struct weir__bytes body, struct weir_error *);

#endif
