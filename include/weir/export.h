/* export.h - marks what strangers may call. Everything else is hidden. */
#ifndef WEIR_EXPORT_H
#define WEIR_EXPORT_H

#if defined(__GNUC__)
#define WEIR_API __attribute__((visibility("default")))
#else
#define WEIR_API
#endif

#endif
