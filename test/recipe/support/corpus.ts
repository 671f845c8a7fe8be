import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import type { TestContext } from 'vitest'

const root = path.resolve(import.meta.dirname, '../../..')
/** Real files of other people. They are read where they are and never copied. */
export const corpus = process.env['LEGATE_CORPUS'] ?? path.join(root, '../shared/corpus')

export function skipWithoutCorpus({ skip }: Pick<TestContext, 'skip'>): void {
  skip(!existsSync(path.join(corpus, 'EXPECTED.json')), `the corpus is not at ${corpus}: set LEGATE_CORPUS`)
}

export interface Expected {
  readonly ok: boolean
  readonly error?: string
  readonly title: string
  readonly version: string
  readonly parameters: readonly {
    readonly key: string
    readonly input_type: string
    readonly requirement: string
    readonly default?: string
  }[]
  readonly extensions: readonly { readonly type: string; readonly name: string }[]
  readonly settings: Readonly<Record<string, unknown>>
  readonly unknown_keys: readonly string[]
  readonly activities: number
  readonly has_response: boolean
  readonly has_retry: boolean
  readonly render?: {
    readonly input: Readonly<Record<string, string>>
    readonly instructions_sha: string
    readonly prompt_sha: string
    readonly instructions_len: number
    readonly prompt_len: number
  }
  readonly sub_recipes?: readonly {
    readonly name: string
    readonly path: string
    readonly values?: Readonly<Record<string, string>>
    readonly sequential_when_repeated: boolean
  }[]
}

/** What every recipe of the corpus is expected to be, by its path below `goose/`. */
export function expectations(): readonly (readonly [file: string, expected: Expected])[] {
  const place = path.join(corpus, 'EXPECTED.json')
  if (!existsSync(place)) return []
  return Object.entries(JSON.parse(readFileSync(place, 'utf8')) as Record<string, Expected>)
}
