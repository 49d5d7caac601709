/**
 * Runs a plan on virtual time, with the model of Postgres and the real feed, slots and index of a validator. The index is judged
 * after every write section and after every event.
 */

import { random } from '@keyward/testkit'

import { SimulatedFiles } from './files.ts'
import { type Finding, Judge } from './judge.ts'
import { Network } from './network.ts'
import type { Plan, Step } from './plan.ts'
import { SimulatedPostgres } from './postgres.ts'
import { bytesOf, idOf, numberOf } from './rows.ts'
import { type Defect, SimulatedValidator } from './validator.ts'
import { ProcessClock, VirtualTime } from './virtual-time.ts'
import { draftOf, OPERATIONS, organizationOfKey } from './world.ts'

export interface RunResult {
  readonly finding: Finding | null
  /** The events of the run, one line each. */
  readonly story: readonly string[]
  /** The number of times that the index was judged. */
  readonly judged: number
  readonly loads: number
  /** The number of reads of the change log that Postgres has executed. */
  readonly reads: number
  /** The number of judgments at which the validator was not ready although it had been ready before. */
  readonly unready: number
  /** The number of validators that began to decide checks from their index file. */
  readonly served: number
}

/** The time of the first step. The validator starts at 0. */
const START_MS = 500
/** The time after the end of all faults within which the index normally equals Postgres. */
const END_MS = 6_000
/**
 * The time after the end of all faults within which the index must equal Postgres. A reload may take five seconds, and may be
 * repeated.
 */
const LATEST_END_MS = 30_000
/** The minimum time between two notifications. */
const NOTIFY_MS = 5

/** Runs a plan. A test can inject a defect. */
export async function runPlan(plan: Plan, defect: Defect = {}): Promise<RunResult> {
  return await new Run(plan, defect).run()
}

class Run {
  readonly #plan: Plan
  readonly #defect: Defect
  readonly #time: VirtualTime
  readonly #network: Network
  readonly #postgres: SimulatedPostgres
  readonly #files: SimulatedFiles | null
  readonly #judge: Judge
  readonly #story: string[] = []
  #validator: SimulatedValidator
  /** The clock of the validator. */
  #clock: ProcessClock
  #life = 0
  #isRestarting = false
  /** Whether the notifier has notified in the last 5 ms, and whether a commit has followed. */
  #isNotifying = false
  #isRequested = false
  #finding: Finding | null = null
  #judged = 0
  /** Whether the index has changed since it was judged. */
  #isWritten = true
  #loads = 0
  #reads = 0
  #hasBeenReady = false
  #unready = 0
  #served = 0
  #isDone = false

  constructor(plan: Plan, defect: Defect) {
    this.#plan = plan
    this.#defect = defect
    const from = random(plan.seed)
    this.#time = new VirtualTime(random(from.int(2 ** 31)))
    this.#network = new Network(this.#time, random(from.int(2 ** 31)))
    this.#postgres = new SimulatedPostgres(() => this.#time.nowMs(), random(from.int(2 ** 31)))
    this.#postgres.maxChanges = plan.maxChanges
    this.#postgres.slowAbove = plan.slowAbove
    this.#network.tell = (line) => this.#tell(line)
    this.#postgres.onCommit = () => this.#notify()
    this.#files =
      plan.fileIntervalMs === null ? null : new SimulatedFiles(random(from.int(2 ** 31)), plan.fileIntervalMs)
    this.#clock = new ProcessClock(this.#time)
    this.#validator = this.#createValidator()
    this.#judge = new Judge(this.#postgres, this.#validator.reader, plan.checks)
  }

  async run(): Promise<RunResult> {
    this.#validator.start()
    for (const step of this.#plan.steps) this.#time.after(START_MS + step.atMs, () => this.#begin(step))
    const healMs = START_MS + this.#plan.lastsMs
    await this.#time.run(healMs, () => this.#judgeNow('event'))
    this.#heal()
    let endMs = healMs + END_MS
    await this.#time.run(endMs, () => this.#judgeNow('event'))
    for (; this.#differenceAtEnd() !== null && endMs < healMs + LATEST_END_MS; endMs += 1_000)
      await this.#time.run(endMs, () => this.#judgeNow('event'))
    this.#judgeEnd()
    this.#isDone = true
    const story = [...this.#story]
    this.#kill()
    this.#files?.remove()
    return {
      finding: this.#finding,
      story,
      judged: this.#judged,
      loads: this.#loads,
      reads: this.#reads + this.#validator.source.reads,
      unready: this.#unready,
      served: this.#served,
    }
  }

  /** Simulates the notifier, which notifies at once, or when 5 ms have passed since its previous notification. */
  #notify(): void {
    this.#isRequested = true
    if (this.#isNotifying) return
    this.#isRequested = false
    this.#isNotifying = true
    this.#validator.source.notify()
    this.#time.after(NOTIFY_MS, () => {
      this.#isNotifying = false
      if (this.#isRequested) this.#notify()
    })
  }

  #createValidator(): SimulatedValidator {
    const life = this.#life
    const validator: SimulatedValidator = new SimulatedValidator({
      network: this.#network,
      postgres: this.#postgres,
      clock: this.#clock,
      pageMs: this.#plan.pageMs,
      staleLimitMs: this.#plan.staleLimitMs,
      life,
      files: this.#files,
      defect: this.#defect,
      tell: (line) => life === this.#life && this.#tell(line),
      onSection: () => validator === this.#validator && this.#onSection(),
      onPages: (organizations) => this.#judge.beginPages(organizations),
      onCaughtUp: () => this.#judge.endPages(),
      onServed: ({ identity, snapshot }) => {
        this.#served++
        const version = this.#postgres.versionOfSnapshot.get(`${identity} ${snapshot}`) ?? 0
        this.#judge.restart(life, validator.reader, version)
      },
      onLoaded: () => {
        this.#loads++
        this.#tell('a load ends')
      },
      onMachine: ({ licenseId, machineId }, xid, isWrite) =>
        this.#judge.own(numberOf(licenseId), new TextDecoder().decode(machineId), xid, isWrite),
    })
    return validator
  }

  #begin(step: Step): void {
    if (this.#finding !== null) return
    if (step.kind === 'transaction') this.#transact(step)
    else if (step.kind === 'fault') this.#fail(step)
    else if (step.kind === 'restart') void this.#restart(step)
    else this.#request(step)
  }

  /** Stops or kills the validator, and starts another one later. */
  async #restart({ isGraceful, file, lastsMs }: Extract<Step, { kind: 'restart' }>): Promise<void> {
    if (this.#isRestarting) return
    this.#isRestarting = true
    this.#tell(`the validator ${isGraceful ? 'stops' : 'is killed'}, and restarts after ${lastsMs} ms`)
    if (isGraceful) await this.#validator.stop()
    this.#kill()
    await this.#time.sleep(lastsMs)
    if (this.#isDone) return
    if (file !== 'latest') this.#tell(`the index file is ${file}`)
    this.#files?.prepare(file)
    this.#reads += this.#validator.source.reads
    this.#life++
    this.#clock = new ProcessClock(this.#time)
    this.#validator = this.#createValidator()
    // The verdicts must not be older than this start, unless `onServed` reports a start from the index file without Postgres.
    this.#judge.restart(this.#life, this.#validator.reader, this.#postgres.latest)
    this.#hasBeenReady = false
    this.#isWritten = true
    this.#isRestarting = false
    this.#validator.start()
  }

  /** Ends the validator at once. Only transactions that Postgres has received continue. */
  #kill(): void {
    this.#clock.kill()
    this.#validator.kill()
    this.#network.cut()
  }

  #transact(step: Extract<Step, { kind: 'transaction' }>): void {
    const transaction = this.#postgres.begin()
    this.#time.after(step.lastsMs, () => {
      if (transaction.isOver) return
      if (step.isRolledBack) return this.#postgres.end(transaction)
      const draft = draftOf(this.#postgres.state)
      const from = random(step.pick)
      const done = step.operations.flatMap((one) => {
        const operation = typeof one === 'string' ? OPERATIONS[one] : one
        return operation(draft, from) ?? []
      })
      this.#postgres.commit(transaction, draft)
      const began = step.lastsMs > 0 ? ` (open for ${step.lastsMs} ms)` : ''
      if (done.length > 0) this.#tell(`transaction ${transaction.xid}${began} ${done.join(', and ')}`)
    })
  }

  #fail({ fault, lastsMs, lost }: Extract<Step, { kind: 'fault' }>): void {
    const untilMs = this.#time.nowMs() + lastsMs
    switch (fault) {
      case 'cut':
        this.#tell('connections are cut')
        return this.#network.cut(0.7)
      case 'refuse':
        this.#tell(`connections are cut and refused for ${lastsMs} ms`)
        return this.#network.refuse(untilMs)
      case 'stall':
        this.#tell(`nothing arrives for ${lastsMs} ms`)
        return this.#network.stall(untilMs)
      case 'mute':
        this.#tell(`notifications are lost for ${lastsMs} ms`)
        this.#network.mutedUntilMs = untilMs
        return
      case 'crash':
        this.#tell(`Postgres crashes for ${lastsMs} ms and loses ${lost} versions`)
        this.#postgres.crash(lost)
        return this.#network.refuse(untilMs)
      case 'fail over':
        this.#tell(`a server without the last ${lost} versions takes over after ${lastsMs} ms`)
        this.#postgres.failOver(lost)
        return this.#network.refuse(untilMs)
      case 'restore':
        this.#tell(`a copy without the last ${lost} versions is restored`)
        this.#postgres.failOver(lost)
        return this.#network.refuse(untilMs)
      case 'dump':
        this.#tell(`a dump without the last ${lost} versions is restored on a new server`)
        this.#postgres.restoreDump(lost)
        return this.#network.refuse(untilMs)
      case 'standby':
        this.#tell(`connections reach a standby for ${lastsMs} ms`)
        this.#postgres.standbyUntilMs = untilMs
        return this.#network.refuse(untilMs)
      case 'prune':
        return this.#prune(lastsMs)
      case 'void':
        this.#tell('a reload is requested')
        return this.#postgres.voidChangeLog()
      default:
        fault satisfies never
    }
  }

  /** Takes a snapshot, and prunes the entries that it contains after `keepMs`, unless the server has been replaced by then. */
  #prune(keepMs: number): void {
    const mark = this.#postgres.snapshot()
    const { historyStart } = this.#postgres
    this.#time.after(keepMs, () => {
      if (this.#postgres.historyStart !== historyStart) return
      this.#tell(`the change log is pruned up to ${mark}`)
      this.#postgres.prune(mark)
    })
  }

  /** Simulates the endpoints: handles a request of an app. */
  #request({ kind, license, machine }: Extract<Step, { kind: 'check' | 'deactivate' }>): void {
    if (!this.#validator.isServing) return
    const organization = organizationOfKey(license)
    const watched = { organization, license, machine, address: '192.0.2.1', country: 'US' }
    const { code, slot, license: found } = this.#judge.show(watched)
    if (found === null) return
    const [licenseId, machineId] = [idOf('license', found), bytesOf(machine)]
    if (kind === 'deactivate') {
      this.#tell(`an app deactivates ${machine} of license ${license}`)
      this.#validator.slots.release(
        { organization: 0, licenseId, machineId, ref: null, isKnown: true },
        () => undefined,
      )
      return
    }
    if (slot === 'none') return
    const claim = { organization, licenseId, machineId, hostname: null, isRecheck: code !== 'VALID', lease: null }
    if (slot === 'claim') {
      this.#tell(`an app claims a slot of license ${license} for ${machine}`)
      this.#validator.slots.claim(claim, () => undefined)
      return
    }
    this.#tell(`${machine} of license ${license} is recorded`)
    this.#validator.record(claim)
  }

  #onSection(): void {
    this.#isWritten = true
    this.#judgeNow('write section')
  }

  #judgeNow(after: string): void {
    const { isServing, isReady, applied, source } = this.#validator
    if (this.#finding !== null || this.#isDone || !isServing) return
    this.#judged++
    if (isReady && applied !== '' && source.reads > 1) this.#hasBeenReady = true
    else if (this.#hasBeenReady) this.#unready++
    const nowMs = this.#time.nowMs()
    const { staleLimitMs } = this.#plan
    const { troubledMs } = this.#network
    this.#finding = this.#judge.judge({ nowMs, isReady, staleLimitMs, troubledMs }, this.#isWritten)
    this.#isWritten = false
    if (this.#finding !== null) this.#tell(`after a ${after}: ${this.#finding.problem}: ${this.#finding.text}`)
  }

  #heal(): void {
    this.#network.downUntilMs = 0
    this.#network.stalledUntilMs = 0
    this.#network.mutedUntilMs = 0
    this.#postgres.standbyUntilMs = 0
  }

  #differenceAtEnd(): string | null {
    if (this.#finding !== null) return null
    return this.#validator.isServing ? this.#judge.judgeEnd() : 'no check is decided'
  }

  #judgeEnd(): void {
    const text = this.#differenceAtEnd()
    if (text !== null) this.#finding = { problem: 'late', atMs: this.#time.nowMs(), text: `in the end ${text}` }
  }

  #tell(line: string): void {
    if (this.#finding === null || line.startsWith('after a'))
      this.#story.push(`${Math.round(this.#time.nowMs() - START_MS)} ms: ${line}`)
  }
}
