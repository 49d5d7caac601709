/**
 * Parses the arguments of `npm run bench`. An error is one line that names the argument, the value received and the
 * values allowed.
 */

import { parseArgs } from 'node:util'

import type { ApiVersion } from './checks.ts'
import { formatMix, parseMix, type Mix } from './mix.ts'
import type { Thresholds } from './thresholds.ts'

export interface BenchOptions {
  /** The address of the validator, or null for the demo of `npm start`. */
  url: URL | null
  apiKey: string | null
  licenses: string[]
  licensesFile: string | null
  machines: string[]
  blacklistedMachines: string[]
  excludedMachines: string[]
  mix: Mix
  version: ApiVersion
  ratePerSecond: number | null
  /** The rate at the end of the run, or null for a constant rate. */
  rampToPerSecond: number | null
  connections: number
  durationMs: number
  thresholds: Thresholds
  /** The path of the HTML file with plots, or null. */
  reportFile: string | null
  wrk: boolean
  json: boolean
  yes: boolean
}

export class ArgumentError extends Error {}

export const HELP = `npm run bench -- [options]

Loads a running validator with license checks and prints throughput, latency and responses. Without --rate it first
sends as many checks as possible, and then half as many, and explains both results.
Without --url it loads the demo that "npm start" runs (.keyward/demo.json).

  --url URL                  address of the validator, or of the balancer in front of it
  --api-key KEY              API key of the organization (kwk_...); or the variable KEYWARD_API_KEY
  --license KEY              a license key to check; may be repeated
  --licenses FILE            license keys from a file: one per line, then its known machine ids, separated by tabs
  --machine ID               a machine that holds a slot of every --license; may be repeated (default bench-1)
  --mix KIND=WEIGHT,...      known, new, blacklisted, excluded, unknown (default known=100)
  --blacklisted-machine ID   a machine id that a blacklist rule matches; may be repeated
  --excluded-machine ID      a machine id that an exclusion rule matches; may be repeated
  --rate N                   send N checks a second, measured from when each was due (default: as fast as possible)
  --ramp-to N                change the rate evenly from --rate to N during the run
  --connections N            open connections (default 50)
  --duration SECONDS         length of the run (default 10)
  --api v1|v2                version of the API (default v2)
  --max-p99 MS               exit with 3 if the 99th percentile of the latency is higher
  --min-rate N               exit with 3 if fewer checks a second get a response
  --max-failures PERCENT     exit with 3 if more checks get no response or a status of 500 or more; 0 allows none
  --report FILE.html         write a page with plots of latency, throughput, percentiles and codes
  --wrk                      use wrk, which is faster and reads no bodies; not with --rate or --report
  --json                     print the result as JSON
  --yes                      confirm that you may load another machine
  --help

Example: npm run bench -- --url http://127.0.0.1:8080 --api-key kwk_... --license ABCD-EFGH-JKLM-NPQR --rate 5000`

const text = { type: 'string' } as const
const list = { type: 'string', multiple: true } as const
const flag = { type: 'boolean', default: false } as const
const TEXTS = { url: text, licenses: text, mix: text, rate: text, 'ramp-to': text }
const SIZES = { connections: text, duration: text, api: text, report: text }
const LIMITS = { 'max-p99': text, 'min-rate': text, 'max-failures': text }
const LISTS = { license: list, machine: list, 'blacklisted-machine': list, 'excluded-machine': list }
const FLAGS = { wrk: flag, json: flag, yes: flag, help: flag }

/** Parses the arguments of `npm run bench --`. Returns `'help'` for --help. Throws ArgumentError. */
export function parseBenchArguments(args: readonly string[], env: NodeJS.ProcessEnv = {}): BenchOptions | 'help' {
  try {
    const known = { ...TEXTS, ...SIZES, ...LIMITS, ...LISTS, ...FLAGS, 'api-key': text }
    const { values } = parseArgs({ args: [...args], options: known })
    if (values.help) return 'help'
    const options: BenchOptions = {
      url: values.url === undefined ? null : parseUrl(values.url),
      apiKey: values['api-key'] ?? env['KEYWARD_API_KEY'] ?? null,
      licenses: values.license ?? [],
      licensesFile: values.licenses ?? null,
      machines: values.machine ?? ['bench-1'],
      blacklistedMachines: values['blacklisted-machine'] ?? [],
      excludedMachines: values['excluded-machine'] ?? [],
      mix: parseMixArgument(values.mix ?? 'known=100'),
      version: parseVersion(values.api ?? 'v2'),
      ratePerSecond: values.rate === undefined ? null : positive('--rate', values.rate, 1_000_000),
      rampToPerSecond: values['ramp-to'] === undefined ? null : positive('--ramp-to', values['ramp-to'], 1_000_000),
      connections: positive('--connections', values.connections ?? '50', 10_000, true),
      durationMs: positive('--duration', values.duration ?? '10', 86_400) * 1000,
      thresholds: {
        maxP99Ms: limit('--max-p99', values['max-p99'], 60_000),
        minPerSecond: limit('--min-rate', values['min-rate'], 10_000_000),
        maxFailuresPercent: limit('--max-failures', values['max-failures'], 100),
      },
      reportFile: values.report ?? null,
      wrk: values.wrk,
      json: values.json,
      yes: values.yes,
    }
    const problem = problemOf(options)
    if (problem !== null) throw new ArgumentError(problem)
    return options
  } catch (error) {
    if (error instanceof ArgumentError) throw error
    const [reason = ''] = (error instanceof Error ? error.message : String(error)).split('\n')
    throw new ArgumentError(`${reason} (--help lists all options)`, { cause: error })
  }
}

/** Returns whether the host of the URL is this machine. */
export function isLoopback(url: URL): boolean {
  return /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname)
}

/** Returns the reason why the options do not fit together, or null. */
function problemOf({ url, apiKey, licenses, licensesFile, mix, yes, wrk, ratePerSecond, ...rest }: BenchOptions) {
  const isGiven = licenses.length > 0 || licensesFile !== null
  if (rest.rampToPerSecond !== null && ratePerSecond === null)
    return '--ramp-to needs --rate, the rate at the begin of the run'
  if (rest.reportFile === '') return '--report takes the path of a file, got ""'
  if (wrk && rest.reportFile !== null)
    return '--report needs the latencies of single checks, which wrk does not print: remove --wrk or --report'
  if (wrk && ratePerSecond !== null) return '--wrk cannot send at a fixed rate: remove --wrk or --rate'
  if (url === null) return isGiven ? '--license and --licenses need --url, because the demo has its own license' : null
  if (apiKey === null) return '--url needs --api-key (or the variable KEYWARD_API_KEY)'
  if (!isGiven) return '--url needs the licenses to check: add --license or --licenses'
  if (!isLoopback(url) && !yes)
    return `${url.hostname} is not this machine: add --yes if you may load it (${formatMix(mix)})`
  if (mix.has('blacklisted') && rest.blacklistedMachines.length === 0)
    return 'a mix with "blacklisted" needs --blacklisted-machine, a machine id that a blacklist matches'
  if (mix.has('excluded') && rest.excludedMachines.length === 0)
    return 'a mix with "excluded" needs --excluded-machine, a machine id that an exclusion matches'
  return null
}

function parseUrl(given: string): URL {
  const url = URL.canParse(given) ? new URL(given) : null
  if (url !== null && /^https?:$/.test(url.protocol)) return url
  throw new ArgumentError(`--url takes an http or https address such as http://127.0.0.1:8080, got "${given}"`)
}

function parseVersion(given: string): ApiVersion {
  if (given === 'v1' || given === 'v2') return given
  throw new ArgumentError(`--api takes v1 or v2, got "${given}"`)
}

function parseMixArgument(given: string): Mix {
  try {
    return parseMix(given)
  } catch (error) {
    throw new ArgumentError(`--mix: ${error instanceof Error ? error.message : String(error)}`)
  }
}

function positive(name: string, given: string, max: number, whole = false): number {
  const value = Number(given)
  if (given.trim() !== '' && value > 0 && value <= max && (!whole || Number.isInteger(value))) return value
  throw new ArgumentError(`${name} takes a ${whole ? 'whole ' : ''}number above 0 and up to ${max}, got "${given}"`)
}

/** Returns the number, which may be 0, or null when the argument is missing. */
function limit(name: string, given: string | undefined, max: number): number | null {
  if (given === undefined) return null
  return given === '0' ? 0 : positive(name, given, max)
}
