import { run } from './program.ts'

// Whoever reads may stop early, as `head` does: then nothing more is to be said.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  process.exit()
})

process.exitCode = await run(process.argv.slice(2), {
  env: process.env,
  streams: {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    isTerminal: process.stderr.isTTY,
  },
  home: process.cwd(),
  // npm runs scripts in the project's folder and says here where its caller stood.
  folder: process.env['INIT_CWD'] ?? process.cwd(),
  nowMs: () => Date.now(),
})
