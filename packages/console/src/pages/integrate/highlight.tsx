import type { ReactNode } from 'react'

/** Matches strings, comments and the keywords of the snippets. A string may contain `//`. */
const TOKENS =
  /(?<string>"[^"\n]*"|'[^'\n]*'|`[^`\n]*`)|(?<comment>(?:\/\/|#).*)|(?<keyword>\b(?:import|from|const|await|if|new|var|using|not|err)\b)/g

/** Returns code with its strings, comments and keywords in color. */
export function highlight(code: string): ReactNode[] {
  const parts: ReactNode[] = []
  let end = 0
  for (const match of code.matchAll(TOKENS)) {
    const [kind] = Object.entries(match.groups ?? {}).find(([, found]) => found !== undefined) ?? []
    parts.push(
      code.slice(end, match.index),
      <span key={match.index} className={`code-${kind}`}>
        {match[0]}
      </span>,
    )
    end = match.index + match[0].length
  }
  return [...parts, code.slice(end)]
}
