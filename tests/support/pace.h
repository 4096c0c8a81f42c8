/* pace.h - how large a part of a long test a slow build does: one in so many. The thread sanitizer
 * has nothing to find in a test of one thread, and takes thirty times as long for it. */
#ifndef WEIR_SUPPORT_PACE_H
#define WEIR_SUPPORT_PACE_H

#if defined __has_feature
#if __has_feature(thread_sanitizer)
#define PACE_THREADS 1
#elif __has_feature(address_sanitizer)
#define PACE_ADDRESSES 1
#endif
#endif

#if defined __SANITIZE_THREAD__ || defined PACE_THREADS
#define PACE 23
#elif defined __SANITIZE_ADDRESS__ || defined PACE_ADDRESSES
#define PACE 11
#else
#define PACE 1
#endif

#endif
