#!/usr/bin/env node
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const HELP = `Usage: legate <command>

  demo            one agent, three subagents, kill -9 in the middle, and nothing done twice (offline, 10 seconds)
  help            this text

  -h, --help      this text
  -v, --version   the version
`

const OPTIONS = {
  help: { type: 'boolean', short: 'h', default: false },
  version: { type: 'boolean', short: 'v', default: false },
} as const

process.exitCode = await main(process.argv.slice(2))

/** Gives the exit code. What a command needs is loaded by the command, so that `--help` answers at once. */
async function main(args: string[]): Promise<number> {
  const read = readArgs(args)
  if (typeof read === 'string') return refuse(read)
  const { values, positionals } = read
  const [command = 'help', ...rest] = positionals
  if (values.version) return print(`${version()}\n`)
  if (values.help || command === 'help') return print(HELP)
  hideExperimentalWarnings()
  if (command === 'demo' && rest.length === 0) {
    const { demo } = await import('./demo/command.ts')
    return demo(fileURLToPath(import.meta.url))
  }
  if (command === 'demo-worker' && process.send !== undefined) {
    const { demoWorker } = await import('./demo/worker.ts')
    return demoWorker(rest[0] ?? '')
  }
  if (command === 'demo') return refuse('"demo" takes no arguments.')
  return refuse(`There is no command "${command}".`)
}

function readArgs(args: string[]) {
  try {
    return parseArgs({ args, options: OPTIONS, allowPositionals: true })
  } catch (error) {
    const [sentence = ''] = String(error instanceof Error ? error.message : error).split('. ')
    return `${sentence}.`
  }
}

function print(text: string): number {
  process.stdout.write(text)
  return 0
}

function refuse(message: string): number {
  process.stderr.write(`legate: ${message} See legate --help.\n`)
  return 2
}

function version(): string {
  const { version: current } = createRequire(import.meta.url)('../../package.json') as { version: string }
  return current
}

/** Node 22 and newer call their own SQLite experimental, on stderr, in the middle of our lines. */
function hideExperimentalWarnings(): void {
  process.removeAllListeners('warning')
  process.on('warning', ({ name, message }) => {
    if (name !== 'ExperimentalWarning') process.stderr.write(`${name}: ${message}\n`)
  })
}
