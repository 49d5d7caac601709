/** Sends checks with curl and wget, with the same arguments and output as the programs in other languages. */

import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'

const [apiKey, license, idle, ...paths] = process.argv.slice(2)
const folder = mkdtempSync(join(tmpdir(), 'keyward-http-'))
const json = JSON.stringify({ license })
const files = {}
for (const [name, bytes] of Object.entries({
  json,
  gzip: gzipSync(json),
  bom: `\ufeff${json}`,
  large: json.padEnd(1_100_000),
})) {
  files[name] = join(folder, name)
  writeFileSync(files[name], bytes)
}

function print(client, path, name, result) {
  console.log([client, path, name, result].join('\t'))
}

function curl(url, file, ...options) {
  const request = ['-sS', '-o', '/dev/null', '-w', '%{http_code}\n', '--data-binary', `@${file}`]
  const headers = ['-H', `Authorization: Bearer ${apiKey}`, '-H', 'Content-Type: application/json', ...options]
  const urls = options.includes('--rate') || options.includes('--parallel-max') ? [url, '-o', '/dev/null', url] : [url]
  const { stdout, stderr, status } = spawnSync('curl', [...request, ...headers, ...urls], { encoding: 'utf8' })
  return status === 0 ? stdout.trim().split('\n').at(-1) : `error: ${stderr.trim()}`
}

function wget(url, file, ...options) {
  const { stderr, error } = spawnSync(
    'wget',
    [
      '-S',
      '--tries=1',
      '-O',
      '/dev/null',
      '--header',
      `Authorization: Bearer ${apiKey}`,
      '--header',
      'Content-Type: application/json',
      `--post-file=${file}`,
      ...options,
      url,
    ],
    { encoding: 'utf8' },
  )
  if (error) return null
  return (
    stderr
      .match(/^ {2}HTTP\/1\.[01] (\d{3})/gm)
      ?.at(-1)
      ?.slice(-3) ?? `error: ${stderr.trim().split('\n').at(-1)}`
  )
}

const hasCurl = spawnSync('curl', ['--version']).status === 0
const hasWget = spawnSync('wget', ['--version']).status === 0
for (const [path, url] of paths.map((one) => one.split('='))) {
  if (hasCurl) {
    print('curl', path, 'length', curl(url, files.json))
    print('curl', path, 'chunked', curl(url, files.json, '-H', 'Transfer-Encoding: chunked'))
    print('curl', path, 'expect', curl(url, files.json, '-H', 'Expect: 100-continue', '--expect100-timeout', '5'))
    print('curl', path, 'reuse', curl(url, files.json, '--parallel-max', '1'))
    print('curl', path, 'http10', curl(url, files.json, '-0'))
    print('curl', path, 'gzip', curl(url, files.gzip, '-H', 'Content-Encoding: gzip'))
    print('curl', path, 'bom', curl(url, files.bom))
    print('curl', path, 'large', curl(url, files.large))
    if (idle > 0) print('curl', path, 'idle', curl(url, files.json, '--rate', '2/m'))
  }
  if (hasWget) {
    print('wget', path, 'length', wget(url, files.json))
    print('wget', path, 'expect', wget(url, files.json, '--header', 'Expect: 100-continue'))
    print('wget', path, 'reuse', wget(url, files.json, url))
    print('wget', path, 'gzip', wget(url, files.gzip, '--header', 'Content-Encoding: gzip'))
    print('wget', path, 'bom', wget(url, files.bom))
    print('wget', path, 'large', wget(url, files.large))
  }
}
rmSync(folder, { recursive: true })
