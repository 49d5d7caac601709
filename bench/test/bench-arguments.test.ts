import { describe, expect, test } from 'vitest'

import { ArgumentError, isLoopback, parseBenchArguments, type BenchOptions } from '../src/load/bench-arguments.ts'

const TARGET = ['--url', 'http://127.0.0.1:8080', '--api-key', 'kwk_x', '--license', 'AAAA']

function parse(...args: string[]): BenchOptions {
  const options = parseBenchArguments(args)
  if (options === 'help') throw new Error('expected options, got help')
  return options
}

describe('parseBenchArguments', () => {
  test('uses the demo as the target by default', () => {
    expect(parse()).toMatchObject({
      url: null,
      connections: 50,
      durationMs: 10_000,
      ratePerSecond: null,
      version: 'v2',
      thresholds: { maxP99Ms: null, minPerSecond: null, maxFailuresPercent: null },
    })
  })

  test('reads the API key from the environment', () => {
    const options = parseBenchArguments(['--url', 'http://localhost:1', '--license', 'A'], {
      KEYWARD_API_KEY: 'kwk_env',
    })
    expect(options).toMatchObject({ apiKey: 'kwk_env' })
  })

  test('requires --yes to load another machine', () => {
    const elsewhere = ['--url', 'https://licenses.example.com', '--api-key', 'k', '--license', 'A']
    expect(() => parse(...elsewhere)).toThrow(/--yes/)
    expect(parse(...elsewhere, '--yes').url?.hostname).toBe('licenses.example.com')
  })

  test.each([
    [['--url', 'ftp://x'], /--url takes/],
    [['--max-p99', 'fast'], /--max-p99 takes a number above 0 and up to 60000, got "fast"/],
    [['--url', 'http://127.0.0.1'], /--api-key/],
    [['--url', 'http://127.0.0.1', '--api-key', 'k'], /--license/],
    [['--license', 'A'], /need --url/],
    [['--rate', '0'], /--rate takes a number above 0/],
    [['--connections', '1.5'], /--connections takes a whole number/],
    [['--duration', 'long'], /--duration/],
    [['--api', 'v3'], /--api takes v1 or v2/],
    [['--mix', 'old=1'], /--mix: "old"/],
    [['--speed', '9'], /--speed/],
    [['--ramp-to', '5'], /--ramp-to needs --rate/],
    [['--rate', '5', '--ramp-to', 'many'], /--ramp-to takes a number above 0/],
    [['--report', ''], /--report takes the path of a file/],
    [['--report', 'a.html', '--wrk'], /--report needs the latencies/],
    [['--rate', '5', '--wrk'], /--wrk cannot send at a fixed rate/],
    [[...TARGET, '--mix', 'blacklisted=1'], /--blacklisted-machine/],
    [[...TARGET, '--mix', 'excluded=1'], /--excluded-machine/],
  ])('rejects %j with an error that names the argument', (args, message) => {
    expect(() => parse(...args)).toThrow(ArgumentError)
    expect(() => parse(...args)).toThrow(message)
  })

  test.each([
    ['http://localhost:80', true],
    ['http://127.8.9.1', true],
    ['http://[::1]:8080', true],
    ['http://127.0.0.1.example.com', false],
    ['http://10.0.0.1', false],
    ['http://localhost.example.com', false],
  ])('isLoopback(%s) returns %s', (address, expected) => {
    expect(isLoopback(new URL(address))).toBe(expected)
  })

  test('returns help for --help', () => {
    expect(parseBenchArguments(['--help'])).toBe('help')
  })
})
