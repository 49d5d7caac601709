/**
 * Simulates three validators, one Postgres and 200 machines that race for five leased slots, in virtual time. The slot service,
 * its queues and the cache of leases are real. Validators pause or are killed, and their wall clocks are wrong by up to
 * ten minutes. Postgres is sometimes not reachable or loses responses, and the change log arrives late.
 */

import type { ClaimAnswer } from '@keyward/database'
import { CODE } from '@keyward/engine'
import type { Random } from '@keyward/testkit'

import type { Clock } from '../../src/shared/clock.ts'
import { type LeaseKey, Leases } from '../../src/shared/leases.ts'
import { Throttle } from '../../src/shared/throttle.ts'
import type { Claim } from '../../src/slots/claim-queue.ts'
import { SlotService } from '../../src/slots/slot-service.ts'
import type { VirtualTime } from '../simulation/virtual-time.ts'

const SEATS = 5
const LEASE_S = 60
const MACHINES = 200
const LICENSE = new Uint8Array(16)
const QUERY_TIMEOUT_MS = 1_200

const bytesOf = (machine: number): Uint8Array => new TextEncoder().encode(String(machine))
const keyOf = (machine: number): LeaseKey => {
  return { license: 1, licenseGeneration: 1, machineHash0: Math.imul(machine + 1, 0x9e3779b1), machineHash1: machine }
}

/** Simulates the slots of the license, like `claim_slots`. Its clock differs from the simulated time by a constant. */
class Postgres {
  readonly ends = new Map<number, number>()
  readonly #time: VirtualTime
  readonly #offMs: number
  isAway = false
  xid = 0

  constructor(time: VirtualTime, offMs: number) {
    this.#time = time
    this.#offMs = offMs
  }

  claim(claims: readonly Claim[]): ClaimAnswer[] {
    const nowMs = this.#time.nowMs() + this.#offMs
    for (const [machine, endMs] of this.ends) if (endMs <= nowMs) this.ends.delete(machine)
    const xid = String(++this.xid)
    const outcomes = claims.map(({ machineId }) => {
      const machine = Number(new TextDecoder().decode(machineId))
      const isKnown = this.ends.has(machine)
      if (!isKnown && this.ends.size >= SEATS) return 'limit'
      this.ends.set(machine, nowMs + 1_000 * LEASE_S)
      return isKnown ? 'known' : 'granted'
    })
    return outcomes.map((outcome) => {
      const leaseSeconds = outcome === 'limit' ? null : LEASE_S
      return { outcome, used: this.ends.size, max: SEATS, xid, expiresAtMs: Infinity, leaseSeconds }
    })
  }
}

/** Simulates a validator's process. The calls that become due during a pause run after the pause. */
class Validator {
  readonly leases = new Leases(new SharedArrayBuffer(1 << 18))
  /** The machines that hold slots in the index. */
  known = new Set<number>()
  used = 0
  isPaused = false
  isKilled = false
  readonly #world: LeaseWorld
  readonly #time: VirtualTime
  readonly #service: SlotService
  readonly #throttles = { recheck: new Throttle(), renewal: new Throttle() }
  readonly #due: (() => void)[] = []
  /** The difference between the monotonic clock and the simulated time. */
  readonly #startedMs: number
  readonly wallOffMs: number

  constructor(world: LeaseWorld, time: VirtualTime, random: Random) {
    this.#world = world
    this.#time = time
    this.#startedMs = random.int(1_000_000)
    this.wallOffMs = random.int(1_200_000) - 600_000
    this.load()
    const clock: Clock = {
      nowMs: () => this.nowMs(),
      after: (delayMs, call) => time.after(delayMs, () => this.soon(call)),
    }
    const execute = (claims: readonly Claim[]): Promise<ClaimAnswer[]> => world.execute(this, claims)
    this.#service = new SlotService(
      { execute, isHopeless: () => true, release: () => Promise.resolve([]) },
      { applyOwn: (change) => this.#apply(change), applySeen: (change) => this.#apply(change) },
      { onError: () => undefined, clock, leases: this.leases },
    )
  }

  nowMs(): number {
    return this.#time.nowMs() + this.#startedMs
  }

  /** Runs `call` at once, or when the process continues. */
  soon(call: () => void): void {
    if (this.isKilled) return
    if (this.isPaused) this.#due.push(call)
    else call()
  }

  resume(): void {
    this.isPaused = false
    for (const call of this.#due.splice(0)) this.soon(call)
  }

  kill(): void {
    this.isKilled = true
    this.#service.close()
  }

  /** Replaces the index with the machines of Postgres. */
  load(): void {
    this.known = new Set(this.#world.postgres.ends.keys())
    this.used = this.known.size
  }

  isAlive(machine: number): boolean {
    return this.known.has(machine) && this.leases.deadlineMs(keyOf(machine), LEASE_S) > this.nowMs()
  }

  /** Decides a check like `endpoints/checks.ts`. */
  check(machine: number): void {
    const lease = keyOf(machine)
    const wallMs = this.#time.nowMs() + this.wallOffMs + 2_000_000
    const claim: Claim = {
      organization: 1,
      licenseId: LICENSE,
      machineId: bytesOf(machine),
      hostname: null,
      isRecheck: false,
      lease,
    }
    if (this.known.has(machine)) {
      const leftMs = this.leases.deadlineMs(lease, LEASE_S) - this.nowMs()
      if (leftMs > 0) {
        this.#world.valid(machine)
        if (leftMs < 500 * LEASE_S && this.#throttles.renewal.isDue(lease.machineHash0, wallMs))
          this.#service.renew(claim)
        return
      }
      this.#claim(claim, machine)
    } else if (this.used < SEATS) this.#claim(claim, machine)
    else if (this.#throttles.recheck.isDue(1, wallMs)) this.#claim({ ...claim, isRecheck: true }, machine)
  }

  #claim(claim: Claim, machine: number): void {
    this.#service.claim(claim, (decision) => {
      if (decision.isDecided && decision.code === CODE.VALID && decision.leaseEndsMs > this.nowMs())
        this.#world.valid(machine)
    })
  }

  #apply({ machineId, held, used }: { machineId: Uint8Array; held: boolean; used: number }): void {
    const machine = Number(new TextDecoder().decode(machineId))
    if (held) this.known.add(machine)
    else this.known.delete(machine)
    this.used = used
  }
}

export class LeaseWorld {
  readonly postgres: Postgres
  readonly #time: VirtualTime
  readonly #random: Random
  validators: Validator[]
  /** The greatest number of machines that were VALID at one instant. */
  most = 0
  validChecks = 0
  statements = 0

  constructor(time: VirtualTime, random: Random) {
    this.#time = time
    this.#random = random
    this.postgres = new Postgres(time, random.int(1_200_000) - 600_000)
    this.validators = [0, 1, 2].map(() => new Validator(this, time, random))
    for (let machine = 0; machine < MACHINES; machine++) this.#live(machine)
    for (const i of [0, 1, 2]) {
      this.#follow(i)
      this.#disturb(i)
    }
    this.#disturbPostgres()
  }

  /** Counts the machines that would be VALID at one or more validators at this instant. */
  valid(machine: number): void {
    const alive = new Set([machine])
    for (const validator of this.validators)
      for (const one of validator.known) if (validator.isAlive(one)) alive.add(one)
    this.validChecks++
    this.most = Math.max(this.most, alive.size)
  }

  async execute(validator: Validator, claims: readonly Claim[]): Promise<ClaimAnswer[]> {
    const random = this.#random
    this.statements++
    await this.#time.sleep(random.int(random.chance(0.02) ? 2_000 : 10))
    const answers = this.postgres.isAway ? null : this.postgres.claim(claims)
    await this.#time.sleep(random.int(random.chance(0.02) ? 2_000 : 10))
    if (answers === null || random.chance(0.01)) {
      await this.#time.sleep(QUERY_TIMEOUT_MS)
      await new Promise<void>((resolve) => validator.soon(resolve))
      throw new Error('no response')
    }
    await new Promise<void>((resolve) => validator.soon(resolve))
    return answers
  }

  /** Simulates a machine, which alternates between up to 29 checks, 5 to 55 s apart, and a pause of up to ten minutes. */
  #live(machine: number): void {
    const random = this.#random
    let left = 0
    const next = (): void => {
      if (left === 0) left = random.int(30)
      left--
      const delayMs = left === 0 ? random.int(600_000) : 5_000 + random.int(50_000)
      this.#time.after(delayMs, () => {
        const validator = this.validators[random.int(3)]!
        validator.soon(() => validator.check(machine))
        next()
      })
    }
    next()
  }

  /** Delivers the change log at random intervals, while Postgres is reachable. */
  #follow(i: number): void {
    this.#time.after(20 + this.#random.int(1_000), () => {
      const validator = this.validators[i]!
      const isCut = this.postgres.isAway || this.#random.chance(0.05)
      if (!isCut) validator.soon(() => validator.load())
      this.#follow(i)
    })
  }

  #disturb(i: number): void {
    const random = this.#random
    this.#time.after(30_000 + random.int(600_000), () => {
      const validator = this.validators[i]!
      if (random.chance(0.3)) {
        validator.kill()
        this.validators[i] = new Validator(this, this.#time, random)
        return this.#disturb(i)
      }
      validator.isPaused = true
      this.#time.after(random.int(random.chance(0.5) ? 3_000 : 180_000), () => {
        validator.resume()
        this.#disturb(i)
      })
    })
  }

  #disturbPostgres(): void {
    this.#time.after(60_000 + this.#random.int(900_000), () => {
      this.postgres.isAway = true
      this.#time.after(this.#random.int(180_000), () => {
        this.postgres.isAway = false
        this.#disturbPostgres()
      })
    })
  }
}
