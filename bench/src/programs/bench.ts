/** `npm run bench`: loads any running validator with license checks, and explains throughput and latency in sentences. */

import { accessSync, constants, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

import { describeMachine } from '../harness/results.ts'
import { ArgumentError, HELP, parseBenchArguments, type BenchOptions } from '../load/bench-arguments.ts'
import { createSupply, prepareChecks, type Check, type Target } from '../load/checks.ts'
import { useDemo } from '../load/demo.ts'
import { explain, type Measured } from '../load/explain.ts'
import { runLoad } from '../load/generator.ts'
import { formatMix } from '../load/mix.ts'
import type { LoadOutcome } from '../load/outcome.ts'
import { preflight } from '../load/preflight.ts'
import { formatCount, formatOutcome } from '../load/print.ts'
import { missedThresholds } from '../load/thresholds.ts'
import { hasWrk, runWrk, writeWrkChecks } from '../load/wrk.ts'
import { writeReport } from '../report/page.ts'

/**
 * The number of prepared checks. A file of `npm run bench:generate` contains at most this number of licenses, and the checks fit into
 * memory.
 */
const PREPARED_CHECKS = 50_000
/** The maximum duration of the run at half of the peak rate. */
const HALF_MS = 10_000
/** The exit code after a run that missed a threshold. */
const MISSED_EXIT = 3

interface Job {
  url: URL
  targets: Target[]
  blacklistedMachines: string[]
  excludedMachines: string[]
}

await main()

async function main(): Promise<void> {
  try {
    const options = parseBenchArguments(process.argv.slice(2), process.env)
    if (options === 'help') return console.log(HELP)
    if (options.wrk && !hasWrk()) throw new ArgumentError('--wrk: wrk is not installed (Debian: apt-get install wrk)')
    requireWritable(options.reportFile)
    const job = options.url === null ? await useDemo(options) : describeJob(options, options.url)
    await measure(options, job)
  } catch (error) {
    console.error(`bench: ${error instanceof Error ? error.message : String(error)}`)
    process.exitCode = error instanceof ArgumentError ? 2 : 1
  }
}

async function measure(options: BenchOptions, job: Job): Promise<void> {
  const { mix, version } = options
  const checks = prepareChecks({ ...job, mix, length: PREPARED_CHECKS })
  const notes = await preflight(job.url, checks, version)
  for (const note of notes) console.error(`note: ${note}`)
  const at = new Date()
  console.error(
    `${job.url.origin}: ${formatMix(mix)}, ${options.connections} connections, ${options.durationMs / 1000} s` +
      (options.ratePerSecond === null ? '' : `, ${options.ratePerSecond} a second`) +
      (options.rampToPerSecond === null ? '' : ` to ${options.rampToPerSecond}`),
  )
  const stop = new AbortController()
  process.once('SIGINT', () => stop.abort())
  const measured = await measureBoth(options, job.url, checks, stop.signal)
  if (process.stderr.isTTY) process.stderr.write('\r\x1b[K')
  const missed = missedThresholds(measured.run, options.thresholds)
  for (const sentence of missed) console.error(`missed: ${sentence}`)
  if (missed.length > 0) process.exitCode = MISSED_EXIT
  const { connections, reportFile } = options
  const place = { mix: formatMix(mix), connections }
  if (reportFile !== null) {
    const report = { ...place, target: job.url.origin, at, machine: describeMachine(), measured, notes, missed }
    writeFileSync(reportFile, writeReport(report))
    console.error(`report: ${reportFile}`)
  }
  if (!options.json) return console.log(`${explain(measured)}\n\n${formatOutcomes(measured)}`)
  const { run: outcome, half } = measured
  const summary = explain(measured).split('\n')
  const extra = { halfOfPeak: half, generatorMachine: describeMachine() }
  console.log(JSON.stringify({ summary, url: job.url.origin, ...place, ...outcome, ...extra }, null, 2))
}

/** Throws before the run if the folder of the report does not exist or cannot be written. */
function requireWritable(reportFile: string | null): void {
  try {
    if (reportFile !== null) accessSync(dirname(reportFile), constants.W_OK)
  } catch {
    throw new ArgumentError(`--report: ${reportFile} cannot be written`)
  }
}

function formatOutcomes({ run: outcome, half }: Measured): string {
  return half === null
    ? formatOutcome(outcome)
    : `${formatOutcome(outcome)}\n\nat half of the peak\n${formatOutcome(half)}`
}

/** Measures the requested run. A run without a rate is followed by one at half of its throughput, unless it was stopped. */
async function measureBoth(options: BenchOptions, url: URL, checks: Check[], signal: AbortSignal): Promise<Measured> {
  const outcome = await run(options, url, checks, signal)
  if (options.ratePerSecond !== null || signal.aborted || outcome.perSecond < 2) return { run: outcome, half: null }
  const durationMs = Math.min(options.durationMs, HALF_MS)
  const half = await run({ ...options, durationMs, ratePerSecond: outcome.perSecond / 2 }, url, checks, signal)
  return { run: outcome, half: half.requests === 0 ? null : half }
}

async function run(options: BenchOptions, url: URL, checks: Check[], signal: AbortSignal): Promise<LoadOutcome> {
  const { connections, durationMs, ratePerSecond, rampToPerSecond, version } = options
  const common = { url, connections, durationMs, signal, onProgress: showProgress() }
  if (!options.wrk || ratePerSecond !== null) {
    const fastest = ratePerSecond === null ? connections : Math.max(ratePerSecond, rampToPerSecond ?? 0)
    const used = {
      connections: Math.min(connections, Math.ceil(fastest)),
      recordsIntervals: options.reportFile !== null,
    }
    const rates = { ratePerSecond, rampToPerSecond }
    return runLoad({ ...common, ...used, ...rates, nextRequest: createSupply(checks, version, url) })
  }
  const file = writeWrkChecks(checks, version)
  try {
    return await runWrk({ ...common, checksFile: file.path })
  } finally {
    file.remove()
  }
}

/** Returns a function that shows the progress on one line of stderr, if stderr is a terminal. */
function showProgress(): (responses: number) => void {
  const start = performance.now()
  let before = 0
  return (responses) => {
    if (!process.stderr.isTTY) return
    const seconds = ((performance.now() - start) / 1000).toFixed(0)
    process.stderr.write(
      `\r\x1b[K${seconds} s   ${formatCount(responses - before)} checks/s   ${formatCount(responses)} in all`,
    )
    before = responses
  }
}

function describeJob(options: BenchOptions, url: URL): Job {
  const apiKey = options.apiKey ?? ''
  const { machines, blacklistedMachines, excludedMachines } = options
  const given = options.licenses.map((licenseKey) => ({ apiKey, licenseKey, machineIds: machines }))
  const listed = options.licensesFile === null ? [] : readLicenses(options.licensesFile, apiKey, machines)
  return { url, targets: [...given, ...listed], blacklistedMachines, excludedMachines }
}

function readLicenses(path: string, apiKey: string, machines: string[]): Target[] {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch {
    throw new ArgumentError(`--licenses: ${path} cannot be read`)
  }
  const lines = text.split('\n').filter((line) => line !== '')
  if (lines.length === 0) throw new ArgumentError(`--licenses: ${path} is empty`)
  return lines.map((line) => {
    const [licenseKey = '', ...machineIds] = line.split('\t')
    return { apiKey, licenseKey, machineIds: machineIds.length > 0 ? machineIds : machines }
  })
}
