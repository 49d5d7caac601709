/** Defines the metrics of webhooks. No label contains an organization, an endpoint or a URL. */

import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

import type { Attempt } from '../outbound/sender.ts'

export interface WebhookMetrics {
  observe(attempt: Attempt): void
  setDue: (count: number) => void
}

export function createWebhookMetrics(registry: Registry): WebhookMetrics {
  const attempts = new Counter({
    name: 'keyward_management_webhook_attempts_total',
    help: 'Attempts to deliver a webhook, by outcome: succeeded, failed (the status is not 2xx), unreachable (no response).',
    labelNames: ['outcome'],
    registers: [registry],
  })
  const duration = new Histogram({
    name: 'keyward_management_webhook_duration_seconds',
    help: 'Duration of an attempt to deliver a webhook.',
    buckets: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15],
    registers: [registry],
  })
  const due = new Gauge({
    name: 'keyward_management_webhook_due',
    help: 'Deliveries that are due and that no process has claimed, counted up to 100,000.',
    registers: [registry],
  })
  return {
    observe({ durationMs, status, error }) {
      const failed = status === null ? 'unreachable' : 'failed'
      attempts.inc({ outcome: error === null ? 'succeeded' : failed })
      duration.observe(durationMs / 1_000)
    },
    setDue: (count) => due.set(count),
  }
}
