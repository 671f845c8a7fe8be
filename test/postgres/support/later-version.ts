import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { inject, onTestFinished } from 'vitest'

/** What a later version of the package has that this one has not. */
export interface LaterVersion {
  /** One step of its schema for each version after this one; `@` stands for the schema. */
  readonly steps: readonly string[]
  /** The oldest version that may use its schema. */
  readonly least: number
  /** The function that it commits with. */
  readonly commits: string
}

const BUILT = 'package.cjs'

/**
 * The programs of crash tests on a later version of the package: the built package of today, with more steps. Gives the file of
 * one of them.
 */
export function laterProgram(name: string, { steps, least, commits }: LaterVersion): string {
  const today = inject('crashPrograms')
  const folder = `${today}-later-${least}-${steps.length}`
  cpSync(today, folder, { recursive: true })
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  // What Node has compiled is of the text of today.
  for (const file of readdirSync(folder)) if (file.endsWith('.code')) rmSync(path.join(folder, file))
  const built = path.join(folder, BUILT)
  const more = steps.map((step) => `,${JSON.stringify(step)}`).join('')
  const changed = [
    [/\];const LEAST=\d+;/, `${more}];const LEAST=${least};`],
    [/(?<=const COMMIT_FUNCTION=(['"`])@\.)commit_\d+(?=\1)/, commits],
  ] as const
  const text = changed.reduce((before, [from, to]) => replaceOnce(before, from, to), readFileSync(built, 'utf8'))
  writeFileSync(built, text)
  return path.join(folder, `${name}.mjs`)
}

/** The function that the version of today commits with: its name, and what it takes, as `CREATE FUNCTION` has it. */
export function commitFunction(): { readonly name: string; readonly takes: string; readonly gives: string } {
  const text = readFileSync(path.join(inject('crashPrograms'), BUILT), 'utf8')
  const [, name, takes, gives] = /CREATE OR REPLACE FUNCTION @\.(commit_\d+)\(([^)]*)\) RETURNS (\S+)/.exec(text) ?? []
  if (name === undefined || takes === undefined || gives === undefined) throw new Error('no commit function is built')
  return { name, takes, gives }
}

function replaceOnce(text: string, from: RegExp, to: string): string {
  const found = text.match(new RegExp(from, 'g')) ?? []
  if (found.length !== 1) throw new Error(`${from} is ${found.length} times in the built package, not once`)
  return text.replace(from, () => to)
}
