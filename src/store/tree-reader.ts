import { InputError } from '../base/error.ts'
import { sha256 } from '../base/hash.ts'
import { type Json, OWN_TEXT, parseJson } from '../base/json.ts'
import type { Body, Edge, EdgeType, Id } from '../graph/rows.ts'
import type { WholeTree, WrittenRow } from './archive.ts'
import type { ChainRecord, RowLetter } from './tree-chain.ts'
import { FORMAT, VERSION } from './tree-lines.ts'

/** Reads what `toLines` has written, one line after the other. Throws InputError that says which line is wrong. */
export class TreeReader {
  private rootId: Id | undefined
  private hash = ''
  private lines = 0
  private isAtEnd = false
  private readonly rows: WrittenRow[] = []
  private readonly edges: Edge[] = []
  private readonly bodies: Body[] = []
  private readonly records: ChainRecord[] = []
  private record: Omit<ChainRecord, 'events'> | undefined

  take(line: string): void {
    const text = line.trimEnd()
    if (text === '') return
    this.lines++
    const read = parseJson(text, LIMITS)
    if (!read.ok) throw this.wrong(read.error)
    if (this.isAtEnd) throw this.wrong('It comes after the end.')
    if (this.rootId === undefined) this.header(read.value)
    else if (Array.isArray(read.value)) this.item(read.value, text)
    else this.end(read.value)
  }

  tree(): WholeTree {
    const { rootId, rows, edges, bodies, records } = this
    if (rootId === undefined || !this.isAtEnd) {
      throw new InputError('invalid_input', 'The export is not whole: its last line is missing. Export the tree again.')
    }
    return { rootId, rows, edges, bodies, records }
  }

  private header(value: Json): void {
    const { legate, version, rootId, hash } = fieldsOf(value)
    if (legate !== FORMAT || typeof rootId !== 'string' || typeof hash !== 'string') {
      throw this.wrong('It is not the first line of an exported tree.')
    }
    if (version !== VERSION) throw this.wrong(`It is of format ${String(version)}; this version reads ${VERSION}.`)
    this.rootId = rootId
    this.hash = hash
  }

  private item(value: readonly Json[], text: string): void {
    const [kind] = value
    if (kind === 'commit') this.commit(fieldsOf(value[1] ?? null))
    else if (kind === 'events') this.events(text)
    else if (kind === 'row') this.row(value, text)
    else if (kind === 'edge') this.edge(value)
    else if (kind === 'body') this.body(value)
    else throw this.wrong('It is no line of an exported tree.')
  }

  private commit({ kind, at, seq, marks, hash }: Fields): void {
    const isRight = typeof kind === 'string' && typeof marks === 'string' && typeof hash === 'string'
    if (!isRight || !Number.isFinite(at) || !Number.isInteger(seq)) throw this.wrong('It is no commit.')
    this.record = { kind, at: Number(at), seq: Number(seq), marks, hash }
  }

  private events(text: string): void {
    if (this.record === undefined) throw this.wrong('Events come after their commit.')
    const { kind, at, seq, marks, hash } = this.record
    this.records.push({ kind, at, seq, events: text.slice('["events",'.length, -1), marks, hash })
    this.record = undefined
  }

  private row(value: readonly Json[], text: string): void {
    const [, letter, turnId = null, row] = value
    const before = `["row","${String(letter)}",${JSON.stringify(turnId)},`
    const isRight = typeof letter === 'string' && letter in NAMES && text.startsWith(before)
    const id = isRight ? fieldsOf(row ?? null)[NAMES[letter as RowLetter]] : undefined
    if (typeof id !== 'string' || (turnId !== null && typeof turnId !== 'string')) throw this.wrong('It is no row.')
    this.rows.push({ letter: letter as RowLetter, id, turnId, text: text.slice(before.length, -1) })
  }

  private edge([, conversationId, from, to, type]: readonly Json[]): void {
    const isRight = [conversationId, from, to].every((id) => typeof id === 'string') && TYPES.includes(String(type))
    if (!isRight || this.rootId === undefined) throw this.wrong('It is no edge.')
    const ends = { from: String(from), to: String(to), type: type as EdgeType }
    this.edges.push({ rootId: this.rootId, conversationId: String(conversationId), ...ends })
  }

  private body([, hash, text]: readonly Json[]): void {
    if (typeof text !== 'string' || hash !== sha256(text)) throw this.wrong('The text has another hash than it says.')
    this.bodies.push({ hash, text })
  }

  private end(value: Json): void {
    const { end, lines } = fieldsOf(value)
    if (end !== this.hash || lines !== this.lines || this.records.at(-1)?.hash !== this.hash) {
      throw this.wrong(`It says that there were ${String(lines)} lines. Some are missing, or were changed.`)
    }
    this.isAtEnd = true
  }

  private wrong(why: string): InputError {
    const message = `Line ${this.lines} of the export cannot be taken: ${why.replace(/\.?$/, '.')} Nothing was written; export the tree again.`
    return new InputError('invalid_input', message, { details: { line: this.lines } })
  }
}

type Fields = { readonly [key: string]: Json }

/** Of one line: a text may be as long as a tool's result. */
const LIMITS = { ...OWN_TEXT, maxBytes: 256_000_000, maxDepth: 200 }
const NAMES = { c: 'conversation', t: 'turn', n: 'node', l: 'link' } as const
const TYPES = ['sequence', 'dependency', 'branch']

function fieldsOf(value: Json): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}
}
