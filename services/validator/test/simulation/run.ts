/**
 * Runs a plan on virtual time, with the model of Postgres and the real feed, slots and index of a validator. The index is judged
 * after every write section and after every event.
 */

import { createIndex, type IndexReader, openIndex } from '@keyward/engine'
import { random } from '@keyward/testkit'

import { type FeedTarget, Follower } from '../../src/feed/follower.ts'
import { Freshness } from '../../src/feed/freshness.ts'
import { Heartbeat } from '../../src/feed/heartbeat.ts'
import { IndexUpdater } from '../../src/feed/index-updater.ts'
import { PublicKeyStore } from '../../src/public-keys/store.ts'
import { Control } from '../../src/shared/control.ts'
import { applyClaim, type MachineState, type SlotIndex, SlotService } from '../../src/slots/slot-service.ts'
import { type Finding, Judge } from './judge.ts'
import { Network, numberOf, SimulatedHeartbeats, SimulatedSlots, SimulatedSource } from './network.ts'
import type { Plan, Step } from './plan.ts'
import { SimulatedPostgres } from './postgres.ts'
import { bytesOf, idOf } from './rows.ts'
import { VirtualTime } from './virtual-time.ts'
import { draftOf, OPERATIONS, organizationOfLicense } from './world.ts'

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
}

/** The staleness limit. It is longer than the interval of reads, and shorter than the bound of the judge. */
const STALE_AFTER_MS = 1_500
/** The time of the first step. The validator starts at 0. */
const START_MS = 500
/** The time after the end of all faults in which the validator must become equal to Postgres. */
const END_MS = 6_000

/** Runs a plan. `wrap` replaces the target of the follower, so that a test can inject a defect. */
export async function runPlan(
  plan: Plan,
  wrap: (target: FeedTarget) => FeedTarget = (target) => target,
): Promise<RunResult> {
  return await new Run(plan, wrap).run()
}

class Run {
  readonly #plan: Plan
  readonly #time: VirtualTime
  readonly #network: Network
  readonly #postgres: SimulatedPostgres
  readonly #source: SimulatedSource
  readonly #store: SimulatedSlots
  readonly #index = createIndex({ hashKey: new Uint8Array(16), reserve: 'small', onSection: () => this.#onSection() })
  readonly #reader: IndexReader = openIndex(this.#index.shared)
  readonly #updater = new IndexUpdater(this.#index, new PublicKeyStore(), () => this.#freshness.rebuild())
  readonly #freshness: Freshness
  readonly #slots: SlotService
  readonly #heartbeat: Heartbeat
  readonly #follower: Follower
  readonly #judge: Judge
  readonly #story: string[] = []
  #finding: Finding | null = null
  #judged = 0
  /** Whether the index has changed since it was judged. */
  #isWritten = true
  #loads = 0
  #hasBeenReady = false
  #unready = 0
  #applied = ''
  #isDone = false

  constructor(plan: Plan, wrap: (target: FeedTarget) => FeedTarget) {
    this.#plan = plan
    const from = random(plan.seed)
    this.#time = new VirtualTime(random(from.int(2 ** 31)))
    this.#network = new Network(this.#time, random(from.int(2 ** 31)))
    this.#postgres = new SimulatedPostgres(() => this.#time.nowMs(), random(from.int(2 ** 31)))
    this.#postgres.maxChanges = plan.maxChanges
    this.#network.tell = (line) => this.#tell(line)
    this.#source = new SimulatedSource(this.#postgres, this.#network, plan.pageMs)
    this.#postgres.onCommit = () => this.#source.notify()
    this.#store = new SimulatedSlots(this.#postgres, this.#network)
    const limits = { staleAfterMs: STALE_AFTER_MS, staleLimitMs: Infinity }
    this.#freshness = new Freshness(new Control(), limits, this.#time)
    this.#judge = new Judge(this.#postgres, this.#reader, plan.checks)
    this.#source.onPages = (organizations) => this.#judge.beginPages(organizations)
    this.#slots = new SlotService(this.#store, this.#slotIndex(), {
      onError: () => undefined,
      clock: this.#time,
      leases: { set: () => undefined },
    })
    this.#heartbeat = new Heartbeat(new SimulatedHeartbeats(this.#postgres, this.#network), {
      isReady: () => this.#isReady,
      onError: () => undefined,
      clock: this.#time,
    })
    this.#follower = this.#createFollower(wrap(this.#updater))
  }

  async run(): Promise<RunResult> {
    this.#follower.start()
    this.#heartbeat.start('http://127.0.0.1:9080')
    for (const step of this.#plan.steps) this.#time.after(START_MS + step.atMs, () => this.#begin(step))
    const healMs = START_MS + this.#plan.lastsMs
    await this.#time.run(healMs, () => this.#judgeNow('event'))
    this.#heal()
    await this.#time.run(healMs + END_MS, () => this.#judgeNow('event'))
    this.#judgeEnd()
    this.#isDone = true
    void this.#follower.stop()
    void this.#heartbeat.close()
    this.#slots.close()
    this.#freshness.close()
    return {
      finding: this.#finding,
      story: this.#story,
      judged: this.#judged,
      loads: this.#loads,
      reads: this.#source.reads,
      unready: this.#unready,
    }
  }

  #begin(step: Step): void {
    if (this.#finding !== null) return
    if (step.kind === 'transaction') this.#transact(step)
    else if (step.kind === 'fault') this.#fail(step)
    else this.#request(step)
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

  /** Prunes the entries that are visible now after `keepMs`, unless the server has been replaced meanwhile. */
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
    if (!this.#freshness.isLoaded) return
    const [licenseId, machineId] = [idOf('license', license), bytesOf(machine)]
    if (kind === 'deactivate') {
      this.#tell(`an app deactivates ${machine} of license ${license}`)
      this.#slots.release({ organization: 0, licenseId, machineId, isKnown: true }, () => undefined)
      return
    }
    const organization = organizationOfLicense(license)
    const watched = { organization, license, machine, address: '192.0.2.1', country: 'US' }
    const { code, slot } = this.#judge.show(watched)
    if (slot === 'none') return
    const claim = { organization, licenseId, machineId, hostname: null, isRecheck: code !== 'VALID', lease: null }
    if (slot === 'claim') {
      this.#tell(`an app claims a slot of license ${license} for ${machine}`)
      this.#slots.claim(claim, () => undefined)
      return
    }
    this.#tell(`${machine} of license ${license} is recorded`)
    void this.#store.execute([claim]).then(
      ([result]) => result && applyClaim(this.#slotIndex(), claim, result),
      () => undefined,
    )
  }

  /** Returns an index that also reports claims and releases to the judge. */
  #slotIndex(): SlotIndex {
    const pass = (isWrite: boolean) => (change: MachineState, xid: bigint) => {
      this.#judge.own(numberOf(change.licenseId), new TextDecoder().decode(change.machineId), xid, isWrite)
      if (isWrite) this.#updater.applyOwn(change, xid)
      else this.#updater.applySeen(change, xid)
    }
    return { applyOwn: pass(true), applySeen: pass(false) }
  }

  #createFollower(target: FeedTarget): Follower {
    return new Follower(
      this.#source,
      target,
      {
        onSkipped: ({ entity, id, reason }) => this.#tell(`row skipped: ${entity} ${id}: ${reason}`),
        onError: (error) => this.#tell(`the change feed fails: ${String(error)}`),
        onLoadProgress: () => this.#freshness.loadProgress(),
        onLoaded: () => {
          this.#loads++
          this.#tell('a load ends')
        },
        onRead: () => undefined,
        onGap: () => {
          this.#tell('the validator has lost its position')
          this.#freshness.gap()
        },
        onCaughtUpButLarge: ({ asOfMs }) => this.#freshness.caughtUp(asOfMs),
        onCaughtUp: ({ snapshot, identity, asOfMs }) => {
          this.#freshness.caughtUp(asOfMs)
          this.#judge.endPages()
          if (snapshot !== this.#applied) this.#tell(`the validator has applied ${snapshot}`)
          this.#applied = snapshot
          this.#heartbeat.applied(snapshot, identity)
        },
      },
      this.#time,
    )
  }

  get #isReady(): boolean {
    return (
      this.#updater.missingRows === 0 &&
      this.#freshness.isLoaded &&
      !this.#freshness.isInGap &&
      !this.#freshness.isStale
    )
  }

  #onSection(): void {
    this.#isWritten = true
    this.#judgeNow('write section')
  }

  #judgeNow(after: string): void {
    if (this.#finding !== null || this.#isDone || !this.#freshness.isLoaded) return
    this.#judged++
    if (this.#isReady && this.#applied !== '' && this.#source.reads > 1) this.#hasBeenReady = true
    else if (this.#hasBeenReady) this.#unready++
    const nowMs = this.#time.nowMs()
    this.#finding = this.#judge.judge(
      { nowMs, isReady: this.#isReady, troubledMs: this.#network.troubledMs },
      this.#isWritten,
    )
    this.#isWritten = false
    if (this.#finding !== null) this.#tell(`after a ${after}: ${this.#finding.problem}: ${this.#finding.text}`)
  }

  #heal(): void {
    this.#network.downUntilMs = 0
    this.#network.stalledUntilMs = 0
    this.#network.mutedUntilMs = 0
    this.#postgres.standbyUntilMs = 0
  }

  #judgeEnd(): void {
    if (this.#finding !== null) return
    const text = this.#judge.judgeEnd()
    if (text !== null) this.#finding = { problem: 'late', atMs: this.#time.nowMs(), text: `in the end ${text}` }
  }

  #tell(line: string): void {
    if (this.#finding === null || line.startsWith('after a'))
      this.#story.push(`${Math.round(this.#time.nowMs() - START_MS)} ms: ${line}`)
  }
}
