#!/usr/bin/perl
# ask.pl SECONDS FILE PATH [MESSAGE]: asks the browser at the port that is a file's first line, and prints the answer to a GET, or,
# with a message, the first one that a web socket there gives to it. Ends with 99 where there is no browser.
# RFC 6455: what a client sends is masked (5.3), and a mask of zeros leaves it as it is; an answer has one or more fragments (5.4).
use strict;
use warnings;
use IO::Socket::INET;

my ($seconds, $file, $path, $message) = @ARGV;
alarm($seconds);
open(my $port_file, "<", $file) or exit 99;
my $port = <$port_file> // exit 99;
chomp $port;
my $browser = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port") or exit 99;

sub take {
  my ($length) = @_;
  my $taken = "";
  while (length $taken < $length) {
    sysread($browser, $taken, $length - length $taken, length $taken) or die "it hung up\n";
  }
  return $taken;
}

sub give {
  my ($data) = @_;
  for (my $sent = 0; $sent < length $data;) {
    $sent += syswrite($browser, $data, 65536, $sent) || die "it hung up\n";
  }
}

my @upgrade = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Version: 13");
give(join("\r\n", "GET $path HTTP/1.1", "Host: 127.0.0.1:$port", (defined $message ? @upgrade : ()), "", ""));
my $head = "";
$head .= take(1) until $head =~ /\r\n\r\n\z/;
if (!defined $message) {
  $head =~ /^content-length:\s*(\d+)/mi or die "an answer without a length: $head\n";
  print take($1);
  exit;
}
$head =~ m{^HTTP/1\.1 101} or die "no web socket: $head\n";
give(pack("CCQ>N", 0x81, 0xff, length $message, 0) . $message);
while (1) {
  my ($first, $length) = unpack("CC", take(2));
  $length = unpack("n", take(2)) if $length == 126;
  $length = unpack("Q>", take(8)) if $length == 127;
  my $part = take($length);
  my $kind = $first & 15;
  die "it hung up\n" if $kind == 8;
  next if $kind > 2;
  print $part;
  last if $first & 128;
}
