/* dialect.h - the names that Event Hubs gives to things on an AMQP connection, for both ends of it:
 * annotations, properties, capabilities, keys of requests and replies. */
#ifndef WEIR_AMQP_DIALECT_H
#define WEIR_AMQP_DIALECT_H

/* Message annotations of a delivered event. The epoch is that of geo-replication, which there is
 * none of: NO_EPOCH. */
#define WEIR__EH_SEQUENCE_EPOCH "x-opt-sequence-number-epoch"
#define WEIR__EH_SEQUENCE "x-opt-sequence-number"
#define WEIR__EH_OFFSET "x-opt-offset"
#define WEIR__EH_TIME "x-opt-enqueued-time"
#define WEIR__EH_KEY "x-opt-partition-key"
#define WEIR__EH_NO_EPOCH (-1)

/* Delivery annotations with the runtime metric, and keys of a partition's properties. */
#define WEIR__EH_LAST_SEQUENCE_EPOCH "last_enqueued_sequence_number_epoch"
#define WEIR__EH_LAST_SEQUENCE "last_enqueued_sequence_number"
#define WEIR__EH_LAST_OFFSET "last_enqueued_offset"
#define WEIR__EH_LAST_TIME "last_enqueued_time_utc"
#define WEIR__EH_RETRIEVED "runtime_info_retrieval_time_utc"
#define WEIR__EH_BEGIN_SEQUENCE_EPOCH "begin_sequence_number_epoch"
#define WEIR__EH_BEGIN_SEQUENCE "begin_sequence_number"
#define WEIR__EH_EMPTY "is_partition_empty"

/* Requests to $cbs and $management, and their replies. */
#define WEIR__EH_OPERATION "operation"
#define WEIR__EH_READ "READ"
#define WEIR__EH_STATUS "status-code"
#define WEIR__EH_STATUS_TEXT "status-description"
#define WEIR__EH_CONDITION "error-condition"
#define WEIR__EH_TYPE_HUB "com.microsoft:eventhub"
#define WEIR__EH_TYPE_PARTITION "com.microsoft:partition"

/* Properties and capabilities of a receiver's attach. */
#define WEIR__EH_EPOCH "com.microsoft:epoch"
#define WEIR__EH_RECEIVER_NAME "com.microsoft:receiver-name"
#define WEIR__EH_METRICS "com.microsoft:enable-receiver-runtime-metric"
#define WEIR__EH_SELECTOR "apache.org:selector-filter:string"

#endif
