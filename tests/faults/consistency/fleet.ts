/** Runs three validators, each with a separate proxy to Postgres, and injects faults. */

import { setTimeout as sleep } from 'node:timers/promises'

import { pruneFeed } from '@keyward/database'
import { type Proxy, type Random, startProxy } from '@keyward/testkit'

import { isReady, type Service, startValidator, until, untilReady } from '../support/children.ts'
import { openPool, type TestPostgres, through } from '../support/postgres.ts'
import type { Fault } from './history.ts'

export interface Member {
  readonly proxy: Proxy
  service: Service
  life: number
}

export class Fleet {
  readonly postgres: TestPostgres
  readonly members: Member[] = []
  readonly faults: Fault[] = []
  readonly pool: ReturnType<typeof openPool>

  constructor(postgres: TestPostgres) {
    this.postgres = postgres
    this.pool = openPool(postgres.url)
  }

  async start(size: number): Promise<void> {
    for (let i = 0; i < size; i++) {
      const proxy = await startProxy(this.postgres.port)
      this.members.push({ proxy, service: await this.#startOne(proxy), life: 0 })
    }
    await untilReady(...this.members.map(({ service }) => service))
  }

  async close(): Promise<void> {
    await Promise.all(this.members.map(({ service }) => service.stop()))
    await Promise.all(this.members.map(({ proxy }) => proxy.close()))
    await this.pool.end()
  }

  /** Injects a random fault and later ends it. Resolves to the name of the fault. */
  async suffer(from: Random): Promise<string> {
    const lastsMs = 200 + from.int(1_800)
    if (from.chance(0.35)) {
      const name = from.pick(Object.keys(this.#onServer))
      return await this.#noted(name, null, () => this.#onServer[name]?.(lastsMs))
    }
    const index = from.int(this.members.length)
    const name = from.pick(Object.keys(this.#onMember))
    return await this.#noted(name, index, () => this.#onMember[name]?.(this.#member(index), lastsMs))
  }

  /** Waits until every validator has applied all committed changes. Resolves to the duration in ms. */
  async untilCaughtUp(): Promise<number> {
    const startedMs = performance.now()
    for (const { service } of this.members) await until(() => isReady(service))
    const { rows } = await this.pool.query<{ now: string }>('select pg_current_snapshot()::text as now')
    const pids = this.members.map(({ service }) => `%:${service.pid}`)
    await until(async () => {
      const done = await this.pool.query<{ n: number }>(
        `select count(*)::int as n from validators
         where name like any($1) and seen_at > now() - interval '5 s' and snap_covers(applied::pg_snapshot, $2::pg_snapshot)`,
        [pids, rows[0]?.now],
      )
      return done.rows[0]?.n === this.members.length
    })
    return performance.now() - startedMs
  }

  #member(index: number): Member {
    const member = this.members[index]
    if (!member) throw new RangeError(`There is no validator with index ${index}`)
    return member
  }

  #startOne(proxy: Proxy): Promise<Service> {
    return startValidator(through(this.postgres.validatorUrl, proxy.port), { STALE_AFTER: '600s' })
  }

  async #noted(name: string, validator: number | null, fault: () => Promise<unknown> | undefined): Promise<string> {
    const noted: Fault = { name, validator, beganMs: performance.now(), endedMs: Infinity }
    this.faults.push(noted)
    await fault()
    noted.endedMs = performance.now()
    return name
  }

  readonly #onMember: Record<string, (member: Member, lastsMs: number) => Promise<unknown>> = {
    cut: ({ proxy }) => Promise.resolve(proxy.cut()),
    refuse: async ({ proxy }, lastsMs) => {
      proxy.refuse()
      await sleep(lastsMs)
      proxy.heal()
    },
    swallow: async ({ proxy }, lastsMs) => {
      proxy.swallow()
      await sleep(lastsMs)
      proxy.heal()
    },
    delay: async ({ proxy }, lastsMs) => {
      proxy.delay(150)
      await sleep(lastsMs)
      proxy.delay(0)
    },
    freeze: async ({ service }, lastsMs) => {
      await service.freeze()
      await sleep(lastsMs)
      service.signal('SIGCONT')
    },
    kill: async (member) => {
      member.service.signal('SIGKILL')
      await member.service.exit
      member.life++
      member.service = await this.#startOne(member.proxy)
      await untilReady(member.service)
    },
  }

  readonly #onServer: Record<string, (lastsMs: number) => Promise<unknown>> = {
    crash: async (lastsMs) => {
      await this.postgres.stop('immediate')
      await sleep(lastsMs)
      await this.postgres.start()
    },
    restart: async (lastsMs) => {
      await this.postgres.stop('fast')
      await sleep(lastsMs)
      await this.postgres.start()
    },
    'freeze server': async (lastsMs) => {
      await this.postgres.freeze()
      await sleep(lastsMs)
      await this.postgres.thaw()
    },
    'kill backends': () =>
      this.pool.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'keyward validator%'`,
      ),
    // The first call sets the mark, and the second call prunes the entries before the mark.
    prune: async () => [await pruneFeed(this.pool, 0), await pruneFeed(this.pool, 0)],
  }
}
