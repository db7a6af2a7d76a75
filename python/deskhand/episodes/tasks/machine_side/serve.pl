#!/usr/bin/perl
# serve.pl FOLDER: serves the files of FOLDER/pages on a port of loopback, which it prints, and keeps in FOLDER/received what is
# posted to received/NAME. A browser opens connections that it may never use: each gets a process of its own.
use strict;
use warnings;
use IO::Socket::INET;

my ($folder) = @ARGV;
my %kinds = (css => "text/css", html => "text/html; charset=utf-8", js => "text/javascript; charset=utf-8", svg => "image/svg+xml");
$SIG{CHLD} = "IGNORE";
mkdir "$folder/received";
my $server = IO::Socket::INET->new(LocalAddr => "127.0.0.1", Listen => 64) or die "no socket: $!\n";
$| = 1;
print $server->sockport, "\n";

sub answer {
  my ($browser, $status, $kind, $body) = @_;
  my @head = ("Content-Type: $kind", "Content-Length: " . length($body), "Cache-Control: no-store", "Connection: close");
  print $browser join("\r\n", "HTTP/1.1 $status", @head, "", $body);
  exit;
}

while (my $browser = $server->accept) {
  next if fork;
  my $sent = "";
  do { sysread($browser, $sent, 65536, length $sent) or exit } until $sent =~ /\r\n\r\n/;
  my ($head, $body) = split /\r\n\r\n/, $sent, 2;
  my ($method, $path) = $head =~ m{^(\w+) /([\w./-]*)} or exit;
  $path = "index.html" if $path eq "";
  if ($method eq "GET" and $path !~ /\.\./ and open(my $file, "<", "$folder/pages/$path")) {
    local $/;
    my ($ending) = $path =~ /(\w+)$/;
    answer($browser, "200 OK", $kinds{$ending} // "application/octet-stream", scalar <$file>);
  }
  if ($method eq "POST" and $path =~ m{^received/(\w+)$}) {
    my $name = $1;
    my ($length) = $head =~ /^content-length:\s*(\d+)/mi;
    while (length $body < $length) { sysread($browser, $body, 65536, length $body) or exit }
    # Renamed into place: who waits for it never reads half of it.
    open(my $file, ">", "$folder/received/.$$") or exit;
    print $file $body;
    close $file;
    rename "$folder/received/.$$", "$folder/received/$name";
    answer($browser, "200 OK", "text/plain", "");
  }
  answer($browser, "404 Not Found", "text/plain", "There is no such page.");
}
