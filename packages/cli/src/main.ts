import { run } from './program.ts'

// The program that reads the output through a pipe, such as `head`, may close the pipe early.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  process.exit()
})

process.exitCode = await run(process.argv.slice(2), {
  env: process.env,
  streams: {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    outIsTerminal: process.stdout.isTTY,
    isTerminal: process.stderr.isTTY,
  },
  home: process.cwd(),
  // npm runs scripts in the folder of the project. INIT_CWD is the folder in which npm was started.
  folder: process.env['INIT_CWD'] ?? process.cwd(),
  nowMs: () => Date.now(),
})
