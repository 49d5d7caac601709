/** Runs Prometheus with the shipped configuration and rules. It scrapes programs of this machine every 200 ms. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { z } from 'zod'

import { freePort } from '../shared/ports.ts'
import { INFRA } from './manifests.ts'

const resultSchema = z.object({
  status: z.literal('success'),
  data: z.object({ result: z.array(z.looseObject({ metric: z.record(z.string(), z.string()) })) }),
})
const alertsSchema = z.object({
  data: z.object({ alerts: z.array(z.object({ labels: z.looseObject({ alertname: z.string() }) })) }),
})

export interface Prometheus {
  /** Returns the series that an expression selects. Rejects if the expression is invalid. */
  query: (expression: string) => Promise<unknown[]>
  /** Returns the names of the alerts that are pending or firing. */
  alerts: () => Promise<string[]>
  stop: () => Promise<void>
}

/** Starts Prometheus. `targets` maps names of jobs to addresses of admin ports. */
export async function startPrometheus(targets: Readonly<Record<string, readonly string[]>>): Promise<Prometheus> {
  const folder = mkdtempSync(join(tmpdir(), 'keyward-prometheus-'))
  copyFileSync(join(INFRA, 'prometheus/rules.yml'), join(folder, 'rules.yml'))
  const shipped = readFileSync(join(INFRA, 'prometheus/prometheus.yml'), 'utf8').replaceAll('5s', '200ms')
  const configuration = shipped.replaceAll(
    /job_name: (\S+)([^]*?targets: )\[[^\]]*\]/g,
    (_found, job: string, between: string) => `job_name: ${job}${between}${JSON.stringify(targets[job] ?? [])}`,
  )
  writeFileSync(join(folder, 'prometheus.yml'), configuration)
  const port = await freePort()
  const base = `http://127.0.0.1:${port}/api/v1`
  const options = [`--config.file=${join(folder, 'prometheus.yml')}`, `--storage.tsdb.path=${join(folder, 'data')}`]
  const child = spawn('prometheus', [...options, `--web.listen-address=127.0.0.1:${port}`], { stdio: 'ignore' })
  const prometheus: Prometheus = {
    query: async (expression) => {
      const response = await fetch(`${base}/query?query=${encodeURIComponent(expression)}`)
      return resultSchema.parse(await response.json()).data.result
    },
    alerts: async () => {
      const response = await fetch(`${base}/alerts`)
      return alertsSchema.parse(await response.json()).data.alerts.map(({ labels }) => labels.alertname)
    },
    stop: async () => {
      if (child.exitCode === null) {
        child.kill('SIGTERM')
        await once(child, 'exit')
      }
      rmSync(folder, { recursive: true, force: true })
    },
  }
  for (let attempt = 0; attempt < 400; attempt++) {
    const ready = await fetch(`http://127.0.0.1:${port}/-/ready`).catch(() => null)
    if (ready?.ok === true) return prometheus
    await sleep(25)
  }
  await prometheus.stop()
  throw new Error('Prometheus did not start')
}
