/**
 * Renders the report from the result files, as one HTML file without scripts or external resources. The page shows the headlines and the
 * goals, then the charts of each scenario, and then the figures of the other programs.
 */

import { z } from 'zod'

import { chart, type DotChart } from './chart.ts'
import { draw } from './draw.ts'
import type { ResultFile } from './results.ts'
import { STYLE } from './style.ts'
import { compact, escapeXml } from './svg.ts'

const summary = z.object({ median: z.number(), min: z.number(), max: z.number(), rounds: z.number() })
const goal = z.object({
  text: z.string(),
  direction: z.enum(['at least', 'at most']),
  value: z.number(),
  unit: z.string(),
  reached: z.boolean(),
  measured: summary,
})
const outcome = z.object({
  title: z.string(),
  question: z.string(),
  headlines: z.array(z.object({ figure: z.string(), text: z.string() })).default([]),
  goals: z.array(goal),
  charts: z.array(chart),
  notes: z.array(z.string()),
  quick: z.boolean().default(false),
})

const roundList = z.array(z.number()).min(3).max(60)

type Goal = z.infer<typeof goal>

/** Returns the whole page. Results named in `order` come first. Results of other programs are shown as tables. */
export function renderReport(results: readonly ResultFile[], order: readonly string[] = []): string {
  const place = (file: ResultFile): number => (order.includes(file.name) ? order.indexOf(file.name) : order.length)
  const scenarios = results
    .toSorted((a, b) => place(a) - place(b))
    .flatMap((file) => {
      const parsed = outcome.safeParse(file.data)
      return parsed.success ? [{ file, ...parsed.data }] : []
    })
  const others = results.filter((file) => !outcome.safeParse(file.data).success)
  // The figures of a quick run are not meaningful, so its goals are not shown.
  const goals = scenarios.flatMap((scenario) => (scenario.quick ? [] : scenario.goals))
  const headlines = scenarios.flatMap((scenario) => (scenario.quick ? [] : scenario.headlines))
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Keyward: measurements</title>
<style>${STYLE}</style>
<body>
<h1>Keyward: measurements</h1>
${headlines.length === 0 ? '' : renderHeadlines(headlines)}
${renderMachine(results)}
${scenarios.some(({ quick }) => quick) ? '<p class="warning">Some results are of a quick run, which only tests that everything works. Their figures are not meaningful.</p>' : ''}
<p>Every figure is the median of rounds that alternate between the contenders. bench/README.md describes the method, and bench/notes contains
the causes.</p>
${goals.length === 0 ? '' : `<h2>Goals</h2>${renderGoals(goals)}`}
${scenarios.map(renderScenario).join('\n')}
${others.map(renderOther).join('\n')}
</body>
</html>
`
}

/** Renders the results that a reader should see first. */
function renderHeadlines(headlines: readonly z.infer<typeof outcome>['headlines'][number][]): string {
  const items = headlines.map(({ figure, text }) => `<li><b>${escapeXml(figure)}</b> ${escapeXml(text)}</li>`)
  return `<ul class="headlines">${items.join('')}</ul>`
}

function renderMachine(results: readonly ResultFile[]): string {
  const machines = new Set(
    results.map(({ machine, node }) => {
      const { cpu, cores, memoryGiB, platform } = machine
      return `${cpu}, ${cores} cores, ${memoryGiB} GiB, ${platform}, Node ${node}`
    }),
  )
  return [...machines].map((words) => `<p class="machine">${escapeXml(words)}</p>`).join('')
}

function source({ name, date, commit }: ResultFile): string {
  const words = [`${name}.json`, date.slice(0, 16).replace('T', ' '), ...(commit === null ? [] : [`commit ${commit}`])]
  return `<p class="source">${escapeXml(words.join(', '))}</p>`
}

function renderGoals(goals: readonly Goal[]): string {
  const rows = goals.map((each) => {
    const unit = each.unit === 'x' ? '' : ` ${each.unit}`
    const { median, min, max, rounds } = each.measured
    return `<tr class="${each.reached ? 'reached' : 'missed'}"><td>${each.reached ? '✓' : '✗'}</td><td>${escapeXml(each.text)}</td>
<td class="number">${each.direction} ${compact(each.value)}${unit}</td><td class="number"><b>${compact(median)}${unit}</b></td>
<td class="number">${rounds > 1 ? `${compact(min)} to ${compact(max)}` : ''}</td><td class="number">${rounds}</td></tr>`
  })
  return `<table><thead><tr><th></th><th>what</th><th>goal</th><th>median</th><th>spread</th><th>rounds</th></tr></thead><tbody>${rows.join('')}</tbody></table>`
}

function renderScenario(scenario: z.infer<typeof outcome> & { file: ResultFile }): string {
  const charts = scenario.charts.map(
    (each) => `<figure><figcaption>${escapeXml(each.title)}</figcaption>${draw(each)}</figure>`,
  )
  const notes = scenario.notes.map((note) => `<li>${escapeXml(note)}</li>`)
  return `<section><h2>${escapeXml(scenario.title)}</h2><p class="question">${escapeXml(scenario.question)}</p>
${charts.join('\n')}
${notes.length === 0 ? '' : `<ul>${notes.join('')}</ul>`}
${source(scenario.file)}</section>`
}

function renderOther(file: ResultFile): string {
  const rows = flatten(file.data).slice(0, 80)
  const cells = rows.map(
    ([name, value]) => `<tr><td>${escapeXml(name)}</td><td class="number">${escapeXml(value)}</td></tr>`,
  )
  const charts = roundsIn(file.data).map((group) => draw({ kind: 'dots', title: file.name, unit: '', rows: group }))
  return `<section><h2>${escapeXml(file.name)}</h2>${charts.map((each) => `<figure>${each}</figure>`).join('')}<table><tbody>${cells.join('')}</tbody></table>
${source(file)}</section>`
}

/**
 * Returns the lists of 3 to 60 numbers that a value contains, grouped by the object that contains them. The lists of an object are rounds
 * of the same measurement, so they share a chart.
 */
function roundsIn(value: unknown): DotChart['rows'][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return []
  const entries = Object.entries(value)
  const rows = entries.flatMap(([label, list]) => {
    const values = roundList.safeParse(list)
    return values.success ? [{ label, values: values.data, goal: null, direction: 'at least' as const }] : []
  })
  return [...(rows.length === 0 ? [] : [rows]), ...entries.flatMap(([, inner]) => roundsIn(inner))]
}

/** Returns the values of nested objects by dotted name. For a long list, returns only the number of its values. */
export function flatten(value: unknown, name = ''): [string, string][] {
  if (typeof value === 'number') return [[name, compact(value)]]
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return [[name, String(value)]]
  if (typeof value !== 'object') return []
  if (Array.isArray(value) && value.length > 12) return [[name, `${value.length} values`]]
  return Object.entries(value).flatMap(([key, inner]) => flatten(inner, name === '' ? key : `${name}.${key}`))
}
