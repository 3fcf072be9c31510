/* GCC before 14 tells its optimiser that `_tile_loadconfig` reads eight bytes, where `ldtilecfg` reads sixty-four: what
 * a function wrote behind the eighth is thrown away, and the first tile that is loaded raises "illegal instruction".
 * This is found before the compiler's own header of the name (.cargo/config.toml), and says what is read. */
#include_next <amxtileintrin.h>

#ifndef LECTERN_TILE_LOADCONFIG
#define LECTERN_TILE_LOADCONFIG
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__AMX_TILE__)

static inline void lectern_tile_loadconfig(const void *config) {
    __asm__ volatile("ldtilecfg\t%X0" : : "m"(*(const unsigned char(*)[64])config));
}
#define _tile_loadconfig lectern_tile_loadconfig

#endif
#endif
