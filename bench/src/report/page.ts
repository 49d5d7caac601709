/** Writes the report of `npm run bench -- --report`: one HTML file that needs no script and no other file. */

import type { describeMachine } from '../harness/results.ts'
import { explain, type Measured } from '../load/explain.ts'
import type { LoadOutcome } from '../load/outcome.ts'
import { formatCount, formatUs } from '../load/print.ts'
import { drawBars, drawLines, escapeHtml, linearTicks } from './charts.ts'

export interface Report {
  target: string
  mix: string
  connections: number
  /** The begin of the run. */
  at: Date
  machine: ReturnType<typeof describeMachine>
  measured: Measured
  /** Sentences that a reader must know before the figures, such as that the target is the development gateway. */
  notes: readonly string[]
  missed: readonly string[]
}

const STYLE = `
:root{color-scheme:light dark;--ground:#fff;--text:#1c2127;--dim:#59636e;--line:#d5dae0;--soft:#f4f6f8;--warn:#fff4d6;--warn-line:#b7791f;--bad:#fde8e8;--bad-line:#c53030;
--color-1:#1864ab;--color-2:#c05600;--color-3:#7b2cbf}
@media (prefers-color-scheme:dark){:root{--ground:#15181c;--text:#e6e9ec;--dim:#a3adb8;--line:#39414a;--soft:#1d2227;--warn:#3a2f10;--warn-line:#d9a53a;--bad:#3d1c1c;--bad-line:#ef7070;
--color-1:#6cb6ff;--color-2:#ffa657;--color-3:#d2a8ff}}
*{box-sizing:border-box}
body{background:var(--ground);color:var(--text);font:16px/1.5 system-ui,sans-serif;margin:0 auto;max-width:860px;padding:24px 16px 64px}
h1{font-size:1.6rem;margin:0 0 4px;overflow-wrap:anywhere}h2{font-size:1.2rem;margin:40px 0 8px}p{margin:8px 0}
.dim,small{color:var(--dim)}figure{margin:24px 0}figcaption{font-weight:600;margin-bottom:4px}figcaption small{font-weight:400;margin-left:6px}
.note{border-left:4px solid var(--warn-line);background:var(--warn);padding:8px 12px}.missed{border-left:4px solid var(--bad-line);background:var(--bad);padding:8px 12px}
.chart,.table{overflow-x:auto}svg{display:block;width:100%;min-width:560px}svg text{fill:var(--dim);font:13px system-ui,sans-serif}
.grid{stroke:var(--line)}.line{fill:none;stroke-width:2;stroke-linejoin:round}.dashed{stroke-dasharray:5 4}ul{list-style:none;margin:0;padding:0}li{margin:8px 0}i{background:var(--color-1);border-radius:2px;display:block;height:12px}
.color-1{stroke:var(--color-1)}.color-2{stroke:var(--color-2)}.color-3{stroke:var(--color-3)}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}th,td{border-bottom:1px solid var(--line);padding:6px 10px;text-align:right}td{white-space:nowrap}th:first-child,td:first-child{text-align:left;white-space:normal}
th{background:var(--soft)}`

export function writeReport(report: Report): string {
  const { target, mix, connections, at, machine, measured, notes, missed } = report
  const { run, half } = measured
  const paragraphs = (sentences: readonly string[], name = ''): string =>
    sentences.map((sentence) => `<p${name && ` class="${name}"`}>${escapeHtml(sentence)}</p>`).join('\n')
  const facts = `${at.toISOString().slice(0, 19).replace('T', ' ')} UTC · ${mix} · ${connections} connections · sent from ${machine.cpu}, ${machine.cores} cores`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>License checks of ${escapeHtml(target)}</title>
<style>${STYLE}</style>
</head>
<body>
<h1>License checks of ${escapeHtml(target)}</h1>
<p class="dim">${escapeHtml(facts)}</p>
${paragraphs(
  notes.map((sentence) => `Note: ${sentence}`),
  'note',
)}
${paragraphs(
  missed.map((sentence) => `Missed threshold: ${sentence}`),
  'missed',
)}
${paragraphs(explain(measured).split('\n'))}
${figuresTable(measured)}
${drawPercentiles(measured)}
${section(half === null ? 'The run' : 'As fast as possible', run)}
${half === null ? '' : section('At half of that rate', half)}
</body>
</html>
`
}

function figuresTable({ run, half }: Measured): string {
  const runs = half === null ? [run] : [run, half]
  const row = (name: string, value: (outcome: LoadOutcome) => string): string =>
    `<tr><td>${name}</td>${runs.map((outcome) => `<td>${value(outcome)}</td>`).join('')}</tr>`
  const percentiles = Object.keys(run.latency.percentilesUs)
  const failures = ({ errors }: LoadOutcome): number => Object.values(errors).reduce((sum, count) => sum + count, 0)
  const names = half === null ? ['The run'] : ['As fast as possible', 'At half of that rate']
  return `<div class="table"><table>
<tr><th></th>${names.map((name) => `<th scope="col">${name}</th>`).join('')}</tr>
${row('Checks a second', ({ perSecond }) => formatCount(perSecond))}
${row('Responses', ({ requests }) => formatCount(requests))}
${row('Requests without a response', (outcome) => formatCount(failures(outcome)))}
${row('Seconds', ({ durationMs }) => (durationMs / 1000).toFixed(1))}
${percentiles.map((p) => row(`Latency, ${p} %`, ({ latency }) => formatUs(latency.percentilesUs[p] ?? 0))).join('\n')}
${row('Latency, maximum', ({ latency }) => formatUs(latency.maxUs))}
</table></div>`
}

/** The axis shows the share of slower responses logarithmically, so that each further nine has the same width. */
function drawPercentiles({ run, half }: Measured): string {
  const percentiles = Object.keys(run.latency.percentilesUs).map(Number)
  const points = ({ latency }: LoadOutcome): { x: number; y: number }[] =>
    percentiles.map((p) => ({ x: p, y: latency.percentilesUs[String(p)] ?? 0 }))
  return drawLines({
    title: 'Latency by percentile',
    x: {
      label: 'percent of the responses that arrived within the time',
      ticks: percentiles,
      max: Math.max(...percentiles),
      format: (p) => `${p} %`,
      scale: (p) => -Math.log10(1 - p / 100),
    },
    y: { label: 'logarithmic', format: formatUs, isLog: true },
    lines: [
      { name: half === null ? 'The run' : 'As fast as possible', color: 1, points: points(run) },
      ...(half === null ? [] : [{ name: 'At half of it', color: 2 as const, points: points(half) }]),
    ],
  })
}

function section(title: string, outcome: LoadOutcome): string {
  const failed = Object.entries(outcome.errors)
  return `<h2>${title}</h2>
${drawOverTime(outcome)}
${drawBars('Responses by code', Object.entries(outcome.codes ?? {}))}
${drawBars('Responses by HTTP status', Object.entries(outcome.statuses))}
${failed.length === 0 ? '<p>Every request got a response.</p>' : drawBars('Requests without a response', failed)}`
}

function drawOverTime({ intervals = [], targetPerSecond, rampToPerSecond, durationMs }: LoadOutcome): string {
  const seconds = durationMs / 1000
  const x = {
    label: 'seconds since the begin of the measurement',
    ticks: linearTicks(seconds),
    max: seconds,
    format: (value: number) => String(Number(value.toFixed(2))),
  }
  const middle = ({ startMs, lengthMs }: { startMs: number; lengthMs: number }): number =>
    (startMs + lengthMs / 2) / 1000
  const latency = (name: 'p50' | 'p99' | 'max'): { x: number; y: number | null }[] =>
    intervals.map((interval) => ({ x: middle(interval), y: interval.latencyUs?.[name] ?? null }))
  const perSecond = (name: 'responses' | 'failures'): { x: number; y: number }[] =>
    intervals.map((interval) => ({ x: middle(interval), y: (interval[name] / interval.lengthMs) * 1000 }))
  const last = targetPerSecond === null ? 0 : (rampToPerSecond ?? targetPerSecond)
  const first = targetPerSecond === null ? 0 : 2 * targetPerSecond - last
  const target = [
    { x: 0, y: first },
    { x: seconds, y: last },
  ]
  const latencies = drawLines({
    title: 'Latency over time',
    x,
    y: { label: 'logarithmic, of the requests that were due in each interval', format: formatUs, isLog: true },
    lines: [
      { name: '50 %', color: 1, points: latency('p50') },
      { name: '99 %', color: 2, points: latency('p99') },
      { name: 'maximum', color: 3, isDashed: true, points: latency('max') },
    ],
  })
  const rates = drawLines({
    title: 'Checks a second over time',
    x,
    y: { label: '', format: formatCount },
    lines: [
      { name: 'with a response', color: 1, points: perSecond('responses') },
      { name: 'without one', color: 2, points: perSecond('failures') },
      ...(targetPerSecond === null ? [] : [{ name: 'target', color: 3 as const, isDashed: true, points: target }]),
    ],
  })
  return `${latencies}\n${rates}`
}
