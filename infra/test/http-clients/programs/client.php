<?php
// Sends checks with the curl extension and with PHP's own streams.

[, $apiKey, $license, $idle] = $argv;
$body = json_encode(['license' => $license]);
$headers = ["Authorization: Bearer $apiKey", 'Content-Type: application/json'];
$bodies = ['gzip' => gzencode($body), 'bom' => "\u{FEFF}$body", 'large' => str_pad($body, 1_100_000)];

function show(string $client, string $path, string $name, string|int $result): void
{
    echo implode("\t", [$client, $path, $name, $result]), "\n";
}

function curl(CurlHandle $handle, string $url, string $data, array $headers, array $options = []): string
{
    curl_setopt_array($handle, [
        CURLOPT_URL => $url,
        CURLOPT_RETURNTRANSFER => true,
        CURLOPT_POST => true,
        CURLOPT_POSTFIELDS => $data,
        CURLOPT_HTTPHEADER => $headers,
    ] + $options);
    $done = curl_exec($handle);
    return $done === false ? 'error: ' . curl_error($handle) : (string) curl_getinfo($handle, CURLINFO_RESPONSE_CODE);
}

function stream(string $url, string $data, array $headers, array $options = []): string
{
    $http = ['method' => 'POST', 'header' => $headers, 'content' => $data, 'ignore_errors' => true];
    $done = @file_get_contents($url, false, stream_context_create(['http' => $options + $http]));
    if ($done === false) return 'error: ' . (error_get_last()['message'] ?? 'no response');
    return explode(' ', $http_response_header[0])[1];
}

foreach (array_slice($argv, 4) as $one) {
    [$path, $url] = explode('=', $one, 2);
    if (extension_loaded('curl')) {
        $name = 'PHP curl';
        show($name, $path, 'length', curl(curl_init(), $url, $body, $headers));
        show($name, $path, 'chunked', curl(curl_init(), $url, $body, [...$headers, 'Transfer-Encoding: chunked']));
        show($name, $path, 'expect', curl(curl_init(), $url, $body, [...$headers, 'Expect: 100-continue']));
        $handle = curl_init();
        curl($handle, $url, $body, $headers);
        show($name, $path, 'reuse', curl($handle, $url, $body, $headers));
        $version = [CURLOPT_HTTP_VERSION => CURL_HTTP_VERSION_1_0];
        show($name, $path, 'http10', curl(curl_init(), $url, $body, $headers, $version));
        show($name, $path, 'gzip', curl(curl_init(), $url, $bodies['gzip'], [...$headers, 'Content-Encoding: gzip']));
        foreach (['bom', 'large'] as $case) show($name, $path, $case, curl(curl_init(), $url, $bodies[$case], $headers));
        if ($idle > 0) {
            sleep((int) $idle);
            show($name, $path, 'idle', curl($handle, $url, $body, $headers));
        }
    }
    $name = 'PHP streams';
    show($name, $path, 'length', stream($url, $body, $headers));
    show($name, $path, 'http10', stream($url, $body, $headers, ['protocol_version' => 1.0]));
    show($name, $path, 'gzip', stream($url, $bodies['gzip'], [...$headers, 'Content-Encoding: gzip']));
    foreach (['bom', 'large'] as $case) show($name, $path, $case, stream($url, $bodies[$case], $headers));
}
