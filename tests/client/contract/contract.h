/* contract.h - what producers, receivers and administration promise on every kind of place.
 *
 * A test program defines contract_open, which gives an empty place, contract_close and
 * contract_lists_keys, and runs the lists of tests. The tests use the public headers only. */
#ifndef WEIR_TESTS_CONTRACT_CONTRACT_H
#define WEIR_TESTS_CONTRACT_CONTRACT_H

#include "admin.h"
#include "event.h"
#include "place.h"
#include "producer.h"
#include "receiver.h"

#define CONTRACT_TEST(test) cmocka_unit_test_setup_teardown(test, contract_open, contract_close)

#define CONTRACT_EVENT_TESTS                                                                       \
    CONTRACT_TEST(events_come_back_as_they_were), CONTRACT_TEST(events_say_where_they_lie),        \
        CONTRACT_TEST(what_is_absent_stays_absent), CONTRACT_TEST(malformed_events_are_refused),   \
        CONTRACT_TEST(as_many_properties_as_there_may_be)

#define CONTRACT_PRODUCER_TESTS                                                                    \
    CONTRACT_TEST(a_batch_is_one_piece), CONTRACT_TEST(keys_choose_the_partition),                 \
        CONTRACT_TEST(without_a_key_partitions_take_turns),                                        \
        CONTRACT_TEST(unknown_places_are_not_found),                                               \
        CONTRACT_TEST(completions_come_once_and_in_order),                                         \
        CONTRACT_TEST(completions_publish_but_do_not_block),                                       \
        CONTRACT_TEST(closing_ends_a_chain_of_completions),                                        \
        CONTRACT_TEST(a_hasty_close_tells_everybody), CONTRACT_TEST(a_send_needs_a_completion),    \
        CONTRACT_TEST(a_hasty_close_waits_for_a_completion),                                       \
        CONTRACT_TEST(a_repeated_batch_is_stored_once),                                            \
        CONTRACT_TEST(a_higher_epoch_fences_the_lower), CONTRACT_TEST(threads_share_a_producer)

#define CONTRACT_RECEIVER_TESTS                                                                    \
    CONTRACT_TEST(receivers_start_where_they_are_told),                                            \
        CONTRACT_TEST(a_receive_keeps_its_deadline),                                               \
        CONTRACT_TEST(a_wait_ends_with_an_event_or_a_cancel),                                      \
        CONTRACT_TEST(what_was_received_lives_until_the_next),                                     \
        CONTRACT_TEST(epochs_decide_who_reads), CONTRACT_TEST(metrics_tell_what_is_newest),        \
        CONTRACT_TEST(what_makes_no_sense_is_refused), CONTRACT_TEST(who_does_not_wait_is_woken),  \
        CONTRACT_TEST(who_does_not_wait_is_told_of_the_end),                                       \
        CONTRACT_TEST(the_end_is_behind_all_events)

#define CONTRACT_ADMIN_TESTS                                                                       \
    CONTRACT_TEST(hubs_come_and_go), CONTRACT_TEST(hubs_are_changed),                              \
        CONTRACT_TEST(a_list_ends_when_its_reader_says),                                           \
        CONTRACT_TEST(lists_within_a_hub_end_so_too), CONTRACT_TEST(there_are_no_orphans),         \
        CONTRACT_TEST(groups_come_and_go), CONTRACT_TEST(rules_have_a_limit),                      \
        CONTRACT_TEST(the_longest_names_do), CONTRACT_TEST(rules_have_two_keys),                   \
        CONTRACT_TEST(a_deleted_hub_says_so), CONTRACT_TEST(options_of_any_age_are_understood),    \
        CONTRACT_TEST(numbers_tell_what_happened), CONTRACT_TEST(a_place_in_use_is_not_closed)

#endif
