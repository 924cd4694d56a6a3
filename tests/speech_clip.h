/* A clip that sounds like speech, made of integers so that tests/golden/vad.py makes the same one:
 * pulses of changing pitch through two resonators, vowels of 0.2 s, pauses of 0.4 s. */
#ifndef AK_TESTS_SPEECH_CLIP_H
#define AK_TESTS_SPEECH_CLIP_H

#include <stdint.h>

/* n samples of 16,000 a second. */
static inline void test_speech_clip(float *out, int n)
{
    /* 2·r·cos(2πF / 16000) and r² in 1/16384, of two formants per vowel */
    static const int64_t vowels[5][2][2] = { { { 30880, 15815 }, { 29175, 15691 } },
                                             { { 32013, 15815 }, { 19952, 15691 } },
                                             { { 31971, 15815 }, { 30214, 15691 } },
                                             { { 31499, 15815 }, { 24054, 15691 } },
                                             { { 31391, 15815 }, { 30339, 15691 } } };
    int64_t y[2][2] = { { 0 } };
    uint32_t noise = 12345;
    int phase = 0;
    for (int i = 0; i < n; i++) {
        int vowel = i / 3200, at = i % 3200;
        noise = (noise * 1103515245u + 12345u) & 0x7fffffffu;
        int64_t random = (int64_t)(noise >> 16) - 16384, pulse = 0;
        int loud = at < 600 ? at : at < 2200 ? 600 : at < 2800 ? 2800 - at : 0;
        loud = vowel % 8 >= 6 ? 0 : loud;
        phase += 100 + i / 1600 % 7 * 6 - vowel % 5 * 3;
        if (phase >= 16000) {
            phase -= 16000;
            pulse = loud * 4;
        }
        pulse += random * loud >> 18;
        for (int k = 0; k < 2; k++) {
            const int64_t *c = vowels[vowel * 7 % 5][k];
            int64_t next = ((c[0] * y[k][0] - c[1] * y[k][1]) >> 14) + pulse;
            y[k][1] = y[k][0];
            y[k][0] = next;
        }
        out[i] = (float)(y[0][0] + (y[1][0] >> 1) + (random >> 9)) / 32768.0f;
    }
}

#endif
