/** A real Prometheus over programs of this machine, with the shipped rules, asking every 200 ms so that a test need not wait. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { z } from 'zod'

import { freePort } from '../shared/ports.ts'
import { INFRA } from './manifests.ts'

const result = z.object({
  status: z.literal('success'),
  data: z.object({ result: z.array(z.looseObject({ metric: z.record(z.string(), z.string()) })) }),
})
const alerts = z.object({
  data: z.object({ alerts: z.array(z.object({ labels: z.looseObject({ alertname: z.string() }) })) }),
})

export interface Prometheus {
  /** The series that an expression yields. Throws where it is refused. */
  query: (expression: string) => Promise<unknown[]>
  /** Names of the alerts that are pending or firing. */
  alerts: () => Promise<string[]>
  stop: () => Promise<void>
}

/** `targets` maps the job's name to the addresses of admin ports. */
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
      return result.parse(await response.json()).data.result
    },
    alerts: async () => {
      const response = await fetch(`${base}/alerts`)
      return alerts.parse(await response.json()).data.alerts.map(({ labels }) => labels.alertname)
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
  throw new Error('Prometheus does not start')
}
