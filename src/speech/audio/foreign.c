/* Each format by the bytes that its files begin with. */
#include "speech/audio/foreign.h"

#include <string.h>

static const struct {
    unsigned at;
    const char *bytes;
    unsigned n;
    const char *what;
} formats[] = {
    { 4, "ftyp3g", 6, "a 3GP file (AMR or AAC, perhaps with video)" },
    { 4, "ftypqt", 6, "a QuickTime file (MOV)" },
    { 4, "ftypM4A", 7, "an M4A file (AAC or Apple Lossless)" },
    { 4, "ftypM4B", 7, "an M4B file (AAC)" },
    { 4, "ftyp", 4, "an MP4 file (AAC or another codec, perhaps with video)" },
    { 4, "moov", 4, "a QuickTime or MP4 file" },
    { 4, "mdat", 4, "a QuickTime or MP4 file" },
    { 4, "styp", 4, "a segment of an MP4 file" },
    { 0, "\xff\xf1", 2, "an AAC file (ADTS)" },
    { 0, "\xff\xf9", 2, "an AAC file (ADTS)" },
    { 0, "ADIF", 4, "an AAC file (ADIF)" },
    { 0, "#!AMR", 5, "an AMR file" },
    { 0, "\x30\x26\xb2\x75\x8e\x66\xcf\x11", 8, "a Windows Media file (WMA or WMV)" },
    { 8, "AVI ", 4, "an AVI file" },
    { 0, "FLV\x01", 4, "a Flash video file" },
    { 0, "\0\0\1\xba", 4, "an MPEG video file" },
    { 0, "\0\0\1\xb3", 4, "an MPEG video file" },
    { 0, ".RMF", 4, "a RealMedia file" },
    { 0, ".ra\xfd", 4, "a RealAudio file" },
    { 0, "MAC ", 4, "a Monkey's Audio file" },
    { 0, "wvpk", 4, "a WavPack file" },
    { 0, "TTA1", 4, "a True Audio file" },
    { 0, "MPCK", 4, "a Musepack file" },
    { 0, "MP+", 3, "a Musepack file" },
    { 0, "DSD ", 4, "a DSD file" },
    { 0, "FRM8", 4, "a DSD file" },
    { 0, "TAK", 3, "a TAK file" },
    { 0, "OFR ", 4, "an OptimFROG file" },
    { 0, "\x0b\x77", 2, "an AC-3 file" },
    { 0, "\x7f\xfe\x80\x01", 4, "a DTS file" },
    { 0, "#EXTM3U", 7, "a playlist, which names audio files" },
    { 0, "MThd", 4, "a MIDI file, which has notes and no sound" },
};

/* MPEG transport streams are packets of 188 bytes; 192 on Blu-ray, with four bytes in front. */
static bool is_transport_stream(struct ak_bytes *in, int64_t at)
{
    for (int n = 188; n <= 192; n += 4) {
        int64_t first = at + n - 188;
        int k = 0;
        while (k < 4 && ak_bytes_are(in, first + (int64_t)k * n, "G", 1))
            k++;
        if (k == 4)
            return true;
    }
    return false;
}

const char *ak_foreign_format(struct ak_bytes *in, int64_t at)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (ak_bytes_are(in, at + formats[i].at, formats[i].bytes, formats[i].n))
            return formats[i].what;
    return is_transport_stream(in, at) ? "an MPEG transport stream" : NULL;
}

ak_status ak_foreign_fail(struct ak_error *error, const char *name, const char *what)
{
    return ak_fail(error, AKUNU_ERROR_FORMAT,
                   "%s: %s, which is not decoded here; convert it to WAV first, for example with "
                   "ffmpeg -i INPUT OUTPUT.wav",
                   name, what);
}
