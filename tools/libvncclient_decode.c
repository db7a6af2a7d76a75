/* libvncclient's decoders, fed through a socket with what a server once sent, for the benchmark beside ours.
 *
 *     libvncclient_decode FIRST SECOND ROUNDS
 *
 * FIRST holds the handshake and the first picture, SECOND what is timed; both end with a bell. Prints the milliseconds of each
 * round. Built by tools/peers. */
#include <pthread.h>
#include <rfb/rfbclient.h>
#include <sys/socket.h>
#include <time.h>

typedef struct {
  char *bytes;
  size_t size;
  int fd;
} Stream;

static int bells;

static void bell(rfbClient *client) {
  (void)client;
  bells++;
}

static void quiet(const char *format, ...) { (void)format; }

static Stream load(const char *path) {
  FILE *file = fopen(path, "rb");
  Stream stream = {0};
  if (!file) exit(2);
  fseek(file, 0, SEEK_END);
  stream.size = ftell(file);
  rewind(file);
  stream.bytes = malloc(stream.size);
  if (fread(stream.bytes, 1, stream.size, file) != stream.size) exit(2);
  fclose(file);
  return stream;
}

static void *send_all(void *argument) {
  Stream *stream = argument;
  for (size_t at = 0; at < stream->size;) {
    ssize_t count = write(stream->fd, stream->bytes + at, stream->size - at);
    if (count <= 0) exit(3);
    at += count;
  }
  return NULL;
}

static void until_bell(rfbClient *client, int wanted) {
  while (bells < wanted)
    if ((client->buffered == 0 && WaitForMessage(client, 1000000) < 0) || !HandleRFBServerMessage(client)) exit(4);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}

int main(int count, char **arguments) {
  if (count != 4) return 1;
  Stream first = load(arguments[1]), second = load(arguments[2]);
  rfbClientLog = rfbClientErr = quiet;
  for (int round = atoi(arguments[3]); round > 0; round--) {
    int ends[2];
    pthread_t thread;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) return 5;
    rfbClient *client = rfbGetClient(8, 3, 4);
    client->sock = ends[0];
    client->Bell = bell;
    client->canHandleNewFBSize = TRUE;
    first.fd = second.fd = ends[1];
    bells = 0;
    pthread_create(&thread, NULL, send_all, &first);
    if (!InitialiseRFBConnection(client)) return 6;
    client->width = client->si.framebufferWidth;
    client->height = client->si.framebufferHeight;
    client->format.redShift = 16, client->format.greenShift = 8, client->format.blueShift = 0;
    if (!client->MallocFrameBuffer(client) || !SetFormatAndEncodings(client)) return 7;
    until_bell(client, 1);
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, send_all, &second);
    double begun = now();
    until_bell(client, 2);
    printf("%.3f\n", now() - begun);
    pthread_join(thread, NULL);
    free(client->frameBuffer), client->frameBuffer = NULL;
    rfbClientCleanup(client);
    close(ends[1]);
  }
  return 0;
}
