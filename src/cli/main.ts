#!/usr/bin/env node
// The program `legate`: reads the arguments, runs one command, and ends the process with its exit code.
//
// Owns: the last line of every error. A CliError and errors of the package print one line; only a defect prints a stack.
// Calls: `read-args`, then the `load` of the command in `commands.ts`.
//
// Must stay true:
// - `--help` and wrong usage load no command and no package code, so they answer at once.
// - Exit codes: 0 completed, 1 failed, 2 wrong usage, 3 waits for a person, 130 interrupted.
// - The process ends when the command is done, even if code of a user's module still holds it.

import { createRequire } from 'node:module'
import { CliError, EXIT } from './command/command.ts'
import { setNextPlace, withPlaces } from './command/next-command.ts'
import { helpText } from './commands/help.ts'
import { COMMANDS } from './commands.ts'
import { MissingId, readArgs } from './read-args.ts'
import { cleanText } from './terminal/clean.ts'
import { endWithReader, exitNow, note } from './terminal/output.ts'

// Ends the process even if a user's module holds it open with connections, timers, or tools that ignore their signal.
await exitNow(await main(process.argv.slice(2)))

/**
 * Runs the command line and returns the exit code. Each command loads its own code, so that `--help` answers at once.
 */
async function main(args: string[]): Promise<number> {
  endWithReader()
  if (args[0] === 'demo-worker' && process.send !== undefined) return demoWorker(args[1] ?? '')
  try {
    const read = readArgs(args, process.env)
    if (read === 'version') return print(`${version()}\n`)
    if (read === 'help') return print(helpText(COMMANDS))
    if (read.wantsHelp) return print(helpText(COMMANDS, read.command.name))
    hideForeignWarnings()
    setNextPlace(read.call)
    const run = await read.command.load()
    return await run(read.call)
  } catch (error) {
    return fail(error, args)
  }
}

async function demoWorker(folder: string): Promise<number> {
  hideForeignWarnings()
  const worker = await import('./demo/worker.ts')
  return worker.demoWorker(folder)
}

/** Prints an error as one line for people. Only an internal error prints its stack. */
async function fail(error: unknown, args: readonly string[]): Promise<number> {
  if (error instanceof CliError) {
    const isSentence = /[.?!:]$/.test(error.message)
    const more = error.namesHelp ? `${isSentence ? '' : '.'} See legate ${knownWord(args)}--help.` : ''
    const meant = error instanceof MissingId ? await candidates(error) : ''
    return complain(`${error.message}${more}${meant}`, error.exitCode)
  }
  if (isOurs(error)) return complain(withPlaces(error.message), EXIT.other)
  return complain(error instanceof Error ? (error.stack ?? error.message) : String(error), EXIT.other)
}

async function candidates({ command, call }: MissingId): Promise<string> {
  const { candidatesFor } = await import('./watch/recent-runs.ts')
  const lines = await candidatesFor(command, call)
  return lines.length === 0 ? '' : `\nThe newest:\n${lines.map((line) => `  ${line}`).join('\n')}`
}

function complain(message: string, code: number): number {
  note(`legate: ${cleanText(message)}`)
  return code
}

/** Recognizes an error of this package, whose message says what to do, without loading the package. */
function isOurs(error: unknown): error is Error {
  return error instanceof Error && Symbol.for('legate.error') in error
}

function knownWord(args: readonly string[]): string {
  const word = args.find((arg) => COMMANDS.some(({ name }) => name === arg))
  return word === undefined ? '' : `${word} `
}

function print(text: string): number {
  process.stdout.write(text)
  return EXIT.completed
}

function version(): string {
  const { version: current } = createRequire(import.meta.url)('../../package.json') as { version: string }
  return current
}

/**
 * Hides warnings about which nobody at a terminal can do anything: Node 22 and newer announce SQLite as experimental, and the
 * package of DBOS uses `pg` in a way that version 9 of it will refuse.
 */
function hideForeignWarnings(): void {
  process.removeAllListeners('warning')
  process.on('warning', ({ name, message }) => {
    if (name === 'ExperimentalWarning' || message.startsWith('Calling client.query() when')) return
    note(`${name}: ${message}`)
  })
}
