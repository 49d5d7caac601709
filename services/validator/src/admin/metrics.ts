/** Defines the metrics of the validator. The workers count in shared memory, which is read at each scrape. */

import { CODES, type IndexWriter } from '@keyward/engine'
import { Counter, Gauge, Histogram, Registry } from 'prom-client'

import type { Freshness } from '../feed/freshness.ts'
import { CHECK_APIS, EVENTS } from '../shared/counters.ts'
import { LEASE_EVENTS } from '../slots/slot-service.ts'
import type { RecorderStatus } from '../usage/recorder.ts'
import type { CheckThreads } from '../workers/check-threads.ts'
import { SampledDurations } from './sampled-durations.ts'

const ENTITIES = ['organization', 'credential', 'product', 'customer', 'license', 'machine', 'rule', 'signingKey']

interface MetricSources {
  threads: CheckThreads
  index: IndexWriter
  freshness: Freshness
  missingRows: () => number
  waitingClaims: () => number
  waitingReleases: () => number
  recorder: () => RecorderStatus
  areSlotsSafe: () => boolean
}

export class Metrics {
  readonly registry = new Registry()
  readonly #register = { registers: [this.registry] }
  readonly skippedRows = new Counter({
    name: 'keyward_feed_skipped_rows_total',
    help: 'Rows that were skipped because they are unreadable or do not fit into the index.',
    labelNames: ['entity'],
    ...this.#register,
  })
  readonly feedErrors = new Counter({
    name: 'keyward_feed_errors_total',
    help: 'Failures to follow the change feed.',
    ...this.#register,
  })
  readonly feedReads = new Histogram({
    name: 'keyward_feed_read_duration_seconds',
    help: 'Duration of one read of the change log.',
    buckets: [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2],
    ...this.#register,
  })
  readonly reloads = new Counter({
    name: 'keyward_feed_loads_total',
    help: 'Loads and reloads of all rows.',
    ...this.#register,
  })
  readonly indexFileErrors = new Counter({
    name: 'keyward_index_file_errors_total',
    help: 'Failures to write the index file.',
    ...this.#register,
  })
  readonly indexFileRestored = new Gauge({
    name: 'keyward_index_file_restored',
    help: '1 when the index was restored from its file at the start, otherwise 0.',
    ...this.#register,
  })
  readonly #indexFileBytes = new Gauge({
    name: 'keyward_index_file_bytes',
    help: 'Size of the last index file that was written.',
    ...this.#register,
  })
  readonly #indexFileTime = new Gauge({
    name: 'keyward_index_file_written_timestamp_seconds',
    help: 'Unix time at which the index file was last written.',
    ...this.#register,
  })
  readonly #indexFilePause = new Gauge({
    name: 'keyward_index_file_pause_seconds',
    help: 'Duration of the pause in applying changes during the last write of the index file.',
    ...this.#register,
  })
  readonly claimBatches = new Histogram({
    name: 'keyward_claim_batch_size',
    help: 'Number of claims in one statement.',
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256],
    ...this.#register,
  })
  readonly claimSeconds = new Histogram({
    name: 'keyward_claim_statement_seconds',
    help: 'Duration of one claim statement.',
    buckets: [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2],
    ...this.#register,
  })
  readonly claimErrors = new Counter({
    name: 'keyward_claim_errors_total',
    help: 'Claim and release statements that failed.',
    ...this.#register,
  })
  readonly leases = new Counter({
    name: 'keyward_leases_total',
    help: 'Leases granted with a new slot, leases renewed, and failed renewals, by event.',
    labelNames: ['event'],
    ...this.#register,
  })
  readonly workerFailures = new Counter({
    name: 'keyward_worker_faults_total',
    help: 'Worker threads that failed and were replaced.',
    ...this.#register,
  })

  indexFileWritten(bytes: number, pausedMs: number): void {
    this.#indexFileBytes.set(bytes)
    this.#indexFileTime.set(Date.now() / 1_000)
    this.#indexFilePause.set(pausedMs / 1_000)
  }

  /** Adds the metrics whose values are read from other parts of the validator at each scrape. */
  observe(sources: MetricSources): void {
    // Each of these series begins with 0, because Prometheus detects an increase only if it has scraped an earlier value.
    for (const entity of ENTITIES) this.skippedRows.inc({ entity }, 0)
    for (const event of LEASE_EVENTS) this.leases.inc({ event }, 0)
    this.#observeThreads(sources.threads)
    this.#gauge(
      'keyward_feed_silence_seconds',
      'Seconds since Postgres last confirmed that the index is current.',
      () => Math.min(sources.freshness.sinceCurrentMs / 1_000, 1e9),
    )
    this.#gauge(
      'keyward_index_missing_rows',
      'Rows that the index lacks because it is full. The validator is ready only at 0.',
      sources.missingRows,
    )
    this.#gauge('keyward_claims_waiting', 'Claims that are waiting for Postgres.', sources.waitingClaims)
    this.#gauge('keyward_releases_waiting', 'Releases that are waiting for Postgres.', sources.waitingReleases)
    this.#gauge(
      'keyward_slots_failover_safe',
      '1 when a failover of Postgres loses no granted slot, 0 when it may.',
      () => (sources.areSlotsSafe() ? 1 : 0),
    )
    const { recorder } = sources
    this.#gauge('keyward_records_waiting', 'Rows of usage that are waiting to be written.', () => recorder().waiting)
    const dropped = new Counter({
      name: 'keyward_records_dropped_total',
      help: 'Entries (checks, or matches of rules) that are missing from the recorded usage because its memory was full, by the part of the usage.',
      labelNames: ['reason'],
      ...this.#register,
      collect: () => {
        dropped.reset()
        for (const [reason, count] of Object.entries(recorder().dropped)) dropped.inc({ reason }, count)
      },
    })
    this.#total(
      'keyward_record_batches_refused_total',
      'Batches of usage that Postgres rejected.',
      () => recorder().rejectedBatches,
    )
    this.#total(
      'keyward_record_seconds_total',
      'Time that the main thread has spent on aggregating the usage of checks.',
      () => recorder().busyMs / 1_000,
    )
    this.#observeIndex(sources.index)
  }

  #observeIndex(index: IndexWriter): void {
    const bytes = new Gauge({
      name: 'keyward_index_bytes',
      help: 'Bytes of the index that are in use, and bytes reserved as address space. Only the bytes in use take memory.',
      labelNames: ['kind'],
      ...this.#register,
      collect: () => {
        const { usedBytes, reservedBytes } = index.stats()
        bytes.set({ kind: 'used' }, usedBytes)
        bytes.set({ kind: 'reserved' }, reservedBytes)
      },
    })
    const rows = new Gauge({
      name: 'keyward_index_rows',
      help: 'Rows of the index.',
      labelNames: ['table'],
      ...this.#register,
      collect: () => {
        for (const [table, count] of Object.entries(index.stats().rows)) rows.set({ table }, count)
      },
    })
  }

  #observeThreads(threads: CheckThreads): void {
    const checks = new Counter({
      name: 'keyward_checks_total',
      help: 'Checks that returned a verdict.',
      labelNames: ['api', 'code'],
      ...this.#register,
      collect: () => {
        const totals = threads.totals()
        checks.reset()
        for (const api of CHECK_APIS) for (const code of CODES) checks.inc({ api, code }, totals.checks(api, code))
      },
    })
    const events = new Counter({
      name: 'keyward_http_events_total',
      help: 'Requests that ended in an error and other request events, by event.',
      labelNames: ['event'],
      ...this.#register,
      collect: () => {
        const totals = threads.totals()
        events.reset()
        for (const event of EVENTS) events.inc({ event }, totals.events(event))
      },
    })
    this.registry.registerMetric(new SampledDurations(() => threads.totals()))
    this.#gauge('keyward_workers', 'Worker threads.', () => threads.size)
  }

  #gauge(name: string, help: string, read: () => number): void {
    const gauge: Gauge = new Gauge({ name, help, ...this.#register, collect: () => gauge.set(read()) })
  }

  #total(name: string, help: string, read: () => number): void {
    const counter: Counter = new Counter({
      name,
      help,
      ...this.#register,
      collect: () => {
        counter.reset()
        counter.inc(read())
      },
    })
  }
}
