// node bench/parse.mjs: what the incremental parser costs beside one JSON.parse of the whole text, with every event and
// the value after each piece of 16 characters; and what it holds in memory. Needs dist (npm run build).

import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { fieldParser } from 'legate/fields'

const ROUNDS = 7
const SIZES = [100_000, 1_000_000, 10_000_000]

if (process.argv[2] === 'memory') console.log(await heldBy(Number(process.argv[3]), Number(process.argv[4])))
else main()

function main() {
  for (const size of SIZES) {
    const text = rows(size)
    const pieces = cut(text, 16)
    const native = best(() => JSON.parse(pieces.join('')))
    const ours = best(() => parse(pieces).value)
    console.log(
      `${String(text.length).padStart(8)} characters: JSON.parse ${ms(native)}, ours ${ms(ours)} = ${(ours / native).toFixed(1)}x, ` +
        `${parse(pieces).events} events`,
    )
  }
  for (const length of [16, 4_096, 10_000_000]) {
    const args = ['--expose-gc', fileURLToPath(import.meta.url), 'memory', '10000000', String(length)]
    console.log(execFileSync(process.execPath, args, { encoding: 'utf8' }).trim())
  }
}

function parse(pieces) {
  const parser = fieldParser()
  let events = 0
  let value
  for (const piece of pieces) {
    events += parser.push(piece).length
    value = parser.value
  }
  events += parser.end().length
  return { value, events }
}

/** A busy machine only adds time, so the fastest round says most about the code. CPU time in milliseconds. */
function best(work) {
  const rounds = Array.from({ length: ROUNDS }, () => {
    const start = process.cpuUsage()
    work()
    const { user, system } = process.cpuUsage(start)
    return (user + system) / 1_000
  })
  return Math.min(...rounds)
}

/** The heap that a parser and its value keep, against the length of the text and the value of JSON.parse. */
async function heldBy(size, length) {
  const bytes = Buffer.from(rows(size))
  // Everything is made once before, so that code and shapes do not count.
  parse(cut(rows(20_000), length))
  const before = await heap()
  const parser = fieldParser()
  feed(parser, bytes, length)
  const ours = (await heap()) - before
  const start = await heap()
  const native = JSON.parse(bytes.toString())
  const theirs = (await heap()) - start
  const times = (held) => `${(held / bytes.length).toFixed(2)}x`
  const kept = Object.keys(native).length + Object.keys(parser.value).length
  return `pieces of ${length}: parser and value hold ${times(ours)} of the text, the value of JSON.parse ${times(theirs)} (${kept} keys)`
}

/** Pieces come as from a network: texts of their own. */
function feed(parser, bytes, length) {
  for (let at = 0; at < bytes.length; at += length) parser.push(bytes.toString('utf8', at, at + length))
}

async function heap() {
  for (let round = 0; round < 4; round++) {
    globalThis.gc()
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return process.memoryUsage().heapUsed
}

function cut(text, length) {
  return Array.from({ length: Math.ceil(text.length / length) }, (_, at) => text.slice(at * length, (at + 1) * length))
}

/** The document of the side-by-side benchmark. */
function rows(size) {
  const list = []
  for (let at = 0, length = 14; length < size; at++) {
    const row = {
      id: at,
      name: `Item ${at} "quoted" \\ back`,
      price: ((at * 37) % 1_000) / 10,
      tags: ['alpha', 'beta', `t${at % 7}`],
      active: at % 3 === 0,
      note: at % 5 ? null : 'line one\nline two \u00e9\u4e2d',
      nested: { x: at, y: -at / 3, deep: { ok: true } },
      text: 'Lorem ipsum dolor sit amet, consectetur adipiscing elit.',
    }
    length += JSON.stringify(row).length + 1
    list.push(row)
  }
  return JSON.stringify({ rows: list })
}

function ms(time) {
  return `${time.toFixed(1)} ms`
}
