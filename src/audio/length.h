/* What the headers of audio files say about their length where libsndfile does not tell. Used by
 * audio/audio.c. */
#ifndef AK_AUDIO_LENGTH_H
#define AK_AUDIO_LENGTH_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes of a WAV file's samples, which begin at *at. 0: it is none, or the length was not known
 * when the header was written. */
uint32_t ak_wav_bytes(int fd, int64_t *at);

/* Whether an MP3 file's first frame has a Xing header, which says how long the file is. Without one
 * libsndfile takes the length from the bit rate of that frame, which others need not have. */
bool ak_mp3_has_length(int fd);

#endif
