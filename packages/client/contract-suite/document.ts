/** Formats the list of cases that `npm run contract-suite -- --list` prints. */

import { describeOutcome, responseCases } from './responses.ts'
import { scenarioGroups } from './scenarios.ts'

/** Returns the list of cases in Markdown, with a heading for each group. */
export function caseList(): string {
  const responses = responseCases.map((each) => {
    const call = each.command === 'activate' ? '`activate`' : '`validate`'
    return `| ${call} | ${each.name} | ${describeOutcome(each)} |`
  })
  return [
    `### Responses (${responses.length})\n\n| Call | Response | Result |\n|---|---|---|\n${responses.join('\n')}\n`,
    ...scenarioGroups.map(({ title, scenarios }) => {
      const rows = scenarios.map(({ name }) => `- ${name}`)
      return `### ${title} (${rows.length})\n\n${rows.join('\n')}\n`
    }),
  ].join('\n')
}
