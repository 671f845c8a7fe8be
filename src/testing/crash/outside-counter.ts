import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { parseOwnJson } from '../../core/base/json.ts'

/** An effect outside the process that caused it: a payment, a letter, a model call. */
export interface CountedEffect {
  /** The group it was counted in: one per test case. */
  readonly group: string
  /** The idempotency key of the call; for a model any name of the call. */
  readonly key: string
  /** The name of the tool. */
  readonly name: string
  readonly pid: number
}

/** A separate process that records effects of others. Its record survives whoever is killed. */
export interface OutsideCounter {
  /** The address for those who count. */
  readonly address: string
  effects(group: string): CountedEffect[]
  stop(): Promise<void>
}

/** Starts the process, which keeps its socket and its file in `folder`. */
export async function startCounter(folder: string): Promise<OutsideCounter> {
  const address = join(folder, 'counter.sock')
  const file = join(folder, 'counter.jsonl')
  const server = spawn(process.execPath, ['--eval', SERVER, address, file], { stdio: ['pipe', 'pipe', 'inherit'] })
  await listening(server)
  return {
    address,
    effects: (group) => readEffects(file).filter((effect) => effect.group === group),
    stop: async () => {
      if (server.exitCode !== null || server.signalCode !== null) return
      server.kill()
      await once(server, 'exit')
    },
  }
}

/** Counts one effect; resolves when the counter has written it to its file. */
export async function countOutside(address: string, effect: Omit<CountedEffect, 'pid'>): Promise<void> {
  const socket = connect(address)
  socket.end(JSON.stringify({ ...effect, pid: process.pid }))
  const answer = await text(socket)
  if (answer !== 'counted') throw new Error(`the outside counter said "${answer}"`)
}

/**
 * The whole program of the counter, as plain JavaScript text, because it runs without TypeScript. One connection counts
 * one effect. It ends together with the process that started it.
 */
const SERVER = `
const { appendFileSync } = require('node:fs')
const [address, file] = process.argv.slice(1)
const server = require('node:net').createServer({ allowHalfOpen: true }, (socket) => {
  let line = ''
  socket.on('error', () => {})
  socket.on('data', (data) => { line += data })
  socket.on('end', () => {
    try { JSON.parse(line) } catch { return socket.destroy() }
    appendFileSync(file, line + '\\n')
    socket.end('counted')
  })
})
server.listen(address, () => console.log('listening'))
process.stdin.on('end', () => process.exit()).resume()
`

async function listening(server: ChildProcess): Promise<void> {
  if (server.stdout === null) throw new Error('the outside counter has no output')
  await once(server.stdout, 'data')
}

function readEffects(file: string): CountedEffect[] {
  if (!existsSync(file)) return []
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean)
  return lines.map((line) => parseOwnJson(line) as CountedEffect)
}
