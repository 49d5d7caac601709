/** Completes the examples of docs/client/other-languages.md to programs, and runs them. */

import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { GO_SETTINGS, python } from './clients.ts'

const sources = fileURLToPath(new URL('../other-languages/', import.meta.url))
const page = readFileSync(new URL('../../../docs/client/other-languages.md', import.meta.url), 'utf8')

interface Example {
  /** The language of the code block. */
  fence: string
  /** Writes the program into the folder, runs it, and returns its output, which ends with the source and the code of the result. */
  run: (code: string, folder: string) => Promise<string>
}

/** Runs a command and returns its standard output. Rejects with the output of the command when it fails. */
async function run(cwd: string, command: string, args: readonly string[], env: Record<string, string> = {}) {
  const { stdout } = await promisify(execFile)(command, args, { cwd, env: { ...process.env, ...env } })
  return stdout
}

const EXAMPLES: Readonly<Record<string, Example>> = {
  Python: {
    fence: 'python',
    async run(code, folder) {
      writeFileSync(join(folder, 'app.py'), `${code}\nprint(result.source, result.code)\n`)
      return run(folder, python ?? 'python3', ['-B', 'app.py'], { PYTHONPATH: join(sources, 'python') })
    },
  },
  Go: {
    fence: 'go',
    async run(code, folder) {
      cpSync(join(sources, 'go'), join(folder, 'internal/keyward'), { recursive: true })
      for (const name of ['go.mod', 'contract', 'receiver'])
        rmSync(join(folder, 'internal/keyward', name), { recursive: true })
      const imports = ['context', 'fmt', 'log', 'os', 'app/internal/keyward']
        .map((name) => `import "${name}"`)
        .join('\n')
      const body = `${code}\nfmt.Println(result.Source, result.Code)`
      writeFileSync(join(folder, 'main.go'), `package main\n\n${imports}\n\nfunc main() {\n${body}\n}\n`)
      writeFileSync(join(folder, 'go.mod'), 'module app\n\ngo 1.19\n')
      return run(folder, 'go', ['run', '.'], { ...GO_SETTINGS, GOCACHE: join(folder, '../go') })
    },
  },
  PHP: {
    fence: 'php',
    async run(code, folder) {
      writeFileSync(join(folder, 'app.php'), `<?php\n${code}\necho $result->source, ' ', $result->code;\n`)
      return run(folder, 'php', ['-d', `include_path=${join(sources, 'php')}`, 'app.php'])
    },
  },
  Java: {
    fence: 'java',
    async run(code, folder) {
      const [own = '', ...rest] = code.split('\n\n')
      const body = `${rest.join('\n\n')}\nSystem.out.println(result.source() + " " + result.code());`
      const program = `import java.net.InetAddress;\nimport java.nio.file.Path;\n${own}\n
public class App { public static void main(String[] arguments) throws Exception {\n${body}\n} }\n`
      writeFileSync(join(folder, 'App.java'), program)
      return run(folder, 'java', ['-cp', join(folder, '../java'), 'App.java'])
    },
  },
  'C++': {
    fence: 'cpp',
    async run(code, folder) {
      const [own = '', ...rest] = code.split('\n\n')
      const body = `${rest.join('\n\n')}\nstd::cout << result.source << ' ' << result.code;`
      writeFileSync(join(folder, 'app.cpp'), `#include <iostream>\n${own}\n\nint main() {\n${body}\n}\n`)
      const options = ['-std=c++17', '-Wall', '-Wextra', '-Werror', '-I', join(sources, 'cpp')]
      await run(folder, 'g++', [...options, 'app.cpp', '-o', 'app', '-lcurl', '-lcrypto'])
      return run(folder, join(folder, 'app'), [])
    },
  },
  'C#': {
    fence: 'csharp',
    async run(code, folder) {
      cpSync(join(sources, 'csharp'), folder, { recursive: true })
      writeFileSync(join(folder, 'Contract.cs'), `${code}\nConsole.WriteLine($"{result.Source} {result.Code}");\n`)
      return run(folder, 'dotnet', ['run'], { HOME: folder })
    },
  },
}

/** Runs the example of a language with these values in place of its placeholders, and returns its output. */
export async function runExample(
  language: string,
  folder: string,
  values: Readonly<Record<string, string>>,
): Promise<string> {
  const example = EXAMPLES[language]
  const [, code] = new RegExp(`^\`\`\`${example?.fence}\\n(.*?)^\`\`\``, 'ms').exec(page) ?? []
  if (example === undefined || code === undefined) throw new Error(`no example in ${language}`)
  mkdirSync(folder, { recursive: true })
  const filled = Object.entries(values).reduce((text, [placeholder, value]) => {
    if (!text.includes(placeholder)) throw new Error(`the example in ${language} does not contain ${placeholder}`)
    return text.replace(placeholder, value)
  }, code)
  return example.run(filled, folder)
}
