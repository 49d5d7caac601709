/**
 * Composes a validator of the simulation from the real classes, as `src/validator.ts` does. A restart ends a validator and
 * starts the next one, which may restore the index from the file of the previous validator.
 */

import { createIndex, type IndexReader, openIndex } from '@keyward/engine'

import { type FeedTarget, Follower, type Position } from '../../src/feed/follower.ts'
import { Freshness } from '../../src/feed/freshness.ts'
import { Heartbeat } from '../../src/feed/heartbeat.ts'
import { IndexUpdater } from '../../src/feed/index-updater.ts'
import type { FilePosition, IndexFile, RestoredIndex } from '../../src/index-file/index-file.ts'
import { Restoration } from '../../src/index-file/restoration.ts'
import { PublicKeyStore } from '../../src/public-keys/store.ts'
import type { Clock } from '../../src/shared/clock.ts'
import { Control } from '../../src/shared/control.ts'
import type { Claim } from '../../src/slots/claim-queue.ts'
import type { Release } from '../../src/slots/release-queue.ts'
import { applyClaim, type MachineState, type SlotIndex, SlotService } from '../../src/slots/slot-service.ts'
import { SimulatedHeartbeats, SimulatedSlots, SimulatedSource } from './clients.ts'
import type { SimulatedFiles } from './files.ts'
import type { Network } from './network.ts'
import type { SimulatedPostgres } from './postgres.ts'

/** `STALE_AFTER`. It is longer than the interval of reads, and shorter than BOUND_MS of the judge. */
const STALE_AFTER_MS = 1_500

/** Replacements of parts of the validator, with which a test injects a defect. */
export interface Defect {
  readonly target?: (target: FeedTarget) => FeedTarget
  /** Replaces the result of the restoration from the index file. */
  readonly restored?: (restored: RestoredIndex, postgres: SimulatedPostgres, nowMs: number) => RestoredIndex
  /** Whether the validator acknowledges changes before they are durable in the journal. */
  readonly isHasty?: boolean
}

export interface ValidatorOptions {
  readonly network: Network
  readonly postgres: SimulatedPostgres
  /** The maximum time that a page of a load takes to arrive. */
  readonly pageMs: number
  readonly staleLimitMs: number
  /** The number of earlier starts. */
  readonly life: number
  readonly clock: Clock
  readonly files: SimulatedFiles | null
  readonly defect: Defect
  readonly tell: (line: string) => void
  readonly onSection: () => void
  readonly onPages: (organizations: readonly number[]) => void
  /** Called when the index contains every change up to a snapshot of Postgres. */
  readonly onCaughtUp: () => void
  readonly onLoaded: () => void
  /** Called when an index from a file of this database is put into service without contact with Postgres. */
  readonly onServed: (file: FilePosition) => void
  /** Called for each claim or release that is applied to the index. */
  readonly onMachine: (machine: MachineState, xid: bigint, isWrite: boolean) => void
}

export class SimulatedValidator {
  readonly reader: IndexReader
  readonly freshness: Freshness
  readonly slots: SlotService
  readonly source: SimulatedSource
  /** The snapshot that was applied last. */
  applied = ''
  readonly #options: ValidatorOptions
  readonly #store: SimulatedSlots
  readonly #control = new Control()
  readonly #index
  readonly #publicKeys = new PublicKeyStore('')
  readonly #updater: IndexUpdater
  readonly #heartbeat: Heartbeat
  readonly #follower: Follower
  readonly #file: IndexFile | null
  readonly #restoration: Restoration | null
  /** The position of the file from which the index was restored, or null. */
  #restoredFrom: FilePosition | null = null
  /** Whether the restored file belongs to another database. */
  #isForeign = false
  #isStopping = false

  constructor(options: ValidatorOptions) {
    this.#options = options
    const { network, postgres, clock, pageMs, staleLimitMs, life, files, defect } = options
    this.#file = files?.open(clock) ?? null
    const hashKey = this.#file?.keys.hashKey ?? new Uint8Array(16)
    this.#index = createIndex({ hashKey, reserve: 'tiny', onSection: () => options.onSection() })
    this.reader = openIndex(this.#index.shared)
    this.#updater = new IndexUpdater(this.#index, this.#publicKeys, {
      onRebuild: () => this.freshness.rebuild(),
      recorder: this.#file?.journal ?? null,
    })
    this.freshness = new Freshness(this.#control, { staleAfterMs: STALE_AFTER_MS, staleLimitMs }, clock)
    this.source = new SimulatedSource(postgres, network, { clock, pageMs, life, onPages: options.onPages })
    this.#store = new SimulatedSlots(postgres, network)
    const store = {
      execute: (claims: readonly Claim[]) => this.#whenThawed(this.#store.execute(claims)),
      isHopeless: () => this.#store.isHopeless(),
      release: (releases: readonly Release[]) => this.#whenThawed(this.#store.release(releases)),
    }
    this.slots = new SlotService(store, this.#slotIndex(), {
      onError: () => undefined,
      clock,
      leases: { set: () => undefined },
    })
    this.#heartbeat = new Heartbeat(new SimulatedHeartbeats(postgres, network, life), {
      answerKey: '',
      isReady: () => this.isReady,
      onError: () => undefined,
      clock,
    })
    this.#follower = this.#createFollower(defect.target?.(this.#updater) ?? this.#updater)
    this.#restoration = this.#file && this.#createRestoration(this.#file)
  }

  start(): void {
    const { files, tell, clock } = this.#options
    this.#follower.start(this.#restore())
    this.#heartbeat.start('http://127.0.0.1:9080')
    this.#file?.start({
      index: this.#index,
      publicKeys: this.#publicKeys,
      pause: () => this.#follower.pause(),
      resume: () => this.#follower.resume(),
      position: () => this.#follower.position,
      currentAtMs: () => clock.nowMs() - this.freshness.sinceCurrentMs,
      onWritten: () => {
        files?.written()
        tell('the index file is written')
      },
      onError: (error) => tell(`the index file is not written: ${String(error)}`),
    })
  }

  /** Stops the validator, which then writes its index file. */
  async stop(): Promise<void> {
    this.#isStopping = true
    await this.#follower.stop()
    this.slots.close()
    await this.#file?.close()
    await this.#heartbeat.close()
    this.freshness.close()
  }

  /** Records that the process was killed. */
  kill(): void {
    this.#isStopping = true
  }

  /** Whether checks are decided. */
  get isServing(): boolean {
    return !this.#isStopping && this.#control.isServing
  }

  get isReady(): boolean {
    const { isLoaded, isInGap, isStale } = this.freshness
    return this.#updater.missingRows === 0 && isLoaded && !isInGap && !isStale
  }

  /** Records a machine of a license without a machine limit. */
  record(claim: Claim): void {
    void this.#whenThawed(this.#store.execute([claim])).then(
      ([result]) => result && applyClaim(this.#slotIndex(), claim, result),
      () => undefined,
    )
  }

  #restore(): FilePosition | null {
    const { tell } = this.#options
    try {
      if (this.#restoration === null) return null
      const { identity, snapshot, isComplete } = this.#restoration.restore()
      tell(`the index is restored ${isComplete ? 'completely' : 'from a file without its journal'}, as of ${snapshot}`)
      this.#restoredFrom = { identity, snapshot }
      return this.#restoredFrom
    } catch (error) {
      // The random path is removed, so that runs with the same seed have the same events.
      const reason = error instanceof Error ? error.message.replace(/, open '.*'$/, '') : String(error)
      tell(`the index file is not used: ${reason}`)
      return null
    }
  }

  #createRestoration(file: IndexFile): Restoration {
    const { defect, clock, postgres } = this.#options
    const restore: IndexFile['restore'] = (index, publicKeys) => {
      const restored = file.restore(index, publicKeys)
      this.#isForeign = !restored.isOfSource
      return defect.restored?.(restored, postgres, clock.nowMs()) ?? restored
    }
    return new Restoration(
      { restore },
      {
        index: this.#index,
        publicKeys: this.#publicKeys,
        updater: this.#updater,
        follower: { serveRestored: () => this.#follower.serveRestored() },
        freshness: this.freshness,
        wallMs: () => clock.nowMs(),
      },
    )
  }

  #whenThawed<T>(result: Promise<T>): Promise<T> {
    return this.#file?.whenThawed(result) ?? result
  }

  /** Returns an index that also reports claims and releases to the judge. */
  #slotIndex(): SlotIndex {
    const pass = (isWrite: boolean) => (machine: MachineState, xid: bigint) => {
      if (this.#isStopping) return
      this.#options.onMachine(machine, xid, isWrite)
      if (isWrite) this.#updater.applyOwn(machine, xid)
      else this.#updater.applySeen(machine, xid)
    }
    return { applyOwn: pass(true), applySeen: pass(false) }
  }

  #createFollower(target: FeedTarget): Follower {
    const { tell, clock } = this.#options
    return new Follower(
      this.source,
      target,
      {
        onSkipped: ({ entity, id, reason }) => tell(`row skipped: ${entity} ${id}: ${reason}`),
        onError: (error) => {
          tell(`the change feed fails: ${String(error)}`)
          const ageMs = this.#restoration?.serve() ?? null
          if (ageMs === null) return
          if (!this.#isForeign && this.#restoredFrom !== null) this.#options.onServed(this.#restoredFrom)
          tell(`the restored index is in service, ${Math.round(ageMs)} ms old`)
        },
        onLoadProgress: () => this.freshness.loadProgress(),
        onLoaded: () => this.#options.onLoaded(),
        onRead: () => undefined,
        onGap: () => {
          this.#restoration?.end()
          tell('the validator has lost its position')
          this.freshness.gap()
        },
        onCaughtUpButLarge: (position, organizations) => {
          const { snapshot, identity, asOfMs } = position
          if (!this.freshness.isLoaded) return
          this.freshness.caughtUp(asOfMs)
          this.#acknowledge(position, () => this.#heartbeat.appliedExcept(snapshot, identity, organizations))
        },
        onCaughtUp: (position) => this.#caughtUp(position),
      },
      clock,
    )
  }

  #acknowledge({ identity, snapshot }: Position, publish: () => void): void {
    if (this.#file === null) return publish()
    if (this.#options.defect.isHasty === true) publish()
    const currentAtMs = this.#options.clock.nowMs() - this.freshness.sinceCurrentMs
    void this.#file.journal.commit({ identity, snapshot, currentAtMs }).then((isDurable) => isDurable && publish())
  }

  #caughtUp(position: Position): void {
    const { snapshot, identity, asOfMs } = position
    this.#restoration?.end()
    this.freshness.caughtUp(asOfMs)
    this.#options.onCaughtUp()
    if (snapshot !== this.applied) this.#options.tell(`the validator has applied ${snapshot}`)
    this.applied = snapshot
    this.#acknowledge(position, () => this.#heartbeat.applied(snapshot, identity))
  }
}
