# Sends checks with HTTP::Tiny.

use strict;
use warnings;
use HTTP::Tiny;
use IO::Compress::Gzip qw(gzip);

my ($api_key, $license, $idle, @paths) = @ARGV;
my $body = qq({"license":"$license"});
my %headers = ('Authorization' => "Bearer $api_key", 'Content-Type' => 'application/json');
gzip(\$body => \my $zipped);

sub post {
    my ($http, $url, $content, %given) = @_;
    my $response = $http->post($url, { content => $content, headers => { %headers, %given } });
    return $response->{status} == 599 ? "error: $response->{content}" =~ s/\s+/ /gr : $response->{status};
}

for (@paths) {
    my ($path, $url) = split /=/, $_, 2;
    my @pieces = (substr($body, 0, 5), substr($body, 5));
    my $http = HTTP::Tiny->new(keep_alive => 1);
    my @cases = (
        [length => sub { post(HTTP::Tiny->new, $url, $body) }],
        [chunked => sub { post(HTTP::Tiny->new, $url, sub { shift @pieces }) }],
        [expect => sub { post(HTTP::Tiny->new, $url, $body, 'Expect' => '100-continue') }],
        [reuse => sub { post($http, $url, $body); post($http, $url, $body) }],
        [gzip => sub { post(HTTP::Tiny->new, $url, $zipped, 'Content-Encoding' => 'gzip') }],
        [bom => sub { post(HTTP::Tiny->new, $url, "\xEF\xBB\xBF$body") }],
        [large => sub { post(HTTP::Tiny->new, $url, $body . ' ' x (1_100_000 - length $body)) }],
    );
    push @cases, [idle => sub { sleep $idle; post($http, $url, $body) }] if $idle > 0;
    print join("\t", 'Perl HTTP::Tiny', $path, $_->[0], $_->[1]->()), "\n" for @cases;
}
