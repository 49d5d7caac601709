/** Fills the placeholders of the examples in the READMEs of the clients, and runs the examples. */

import { blocksOf, type ClientUnderTest, readReadme } from './clients.ts'

const FENCES: Readonly<Record<string, string>> = {
  Python: 'python',
  Go: 'go',
  PHP: 'php',
  Java: 'java',
  'C++': 'cpp',
  'C#': 'csharp',
}

/** Runs the example of a client in the project that has the client, with these values in place of its placeholders, and returns its output. */
export async function runExample(
  { language, folder, runExample: start }: ClientUnderTest,
  project: string,
  values: Readonly<Record<string, string>>,
): Promise<string> {
  const [code] = blocksOf(readReadme(folder ?? ''), FENCES[language] ?? '')
  if (code === undefined) throw new Error(`no example in ${language}`)
  const filled = Object.entries(values).reduce((text, [placeholder, value]) => {
    if (!text.includes(placeholder)) throw new Error(`the example in ${language} does not contain ${placeholder}`)
    return text.replace(placeholder, value)
  }, code)
  return start(project, filled)
}
