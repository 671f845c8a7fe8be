import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect } from 'vitest'
import { type Place, until } from '../../../cli/support/cli.ts'
import { localStore } from '../../../support/rows.ts'
import type { Definition } from './definition.ts'
import { type Expectation, expectationOf } from './expectation.ts'
import { type Mode, type Played, play, SECRET, serversOf, workplace } from './play.ts'
import { ANSWER, Provider } from './provider.ts'
import type { Call } from './tools.ts'

export const TASK = 'Try every tool.'

/** Runs a file as somebody who has it would, and holds what happened against what the file says. Gives what was sent. */
export async function tryOut(definition: Definition, mode: Mode, model: readonly string[] = []) {
  const expected = expectationOf(definition)
  const place = workplace()
  const provider = new Provider(expected)
  Object.assign(place.more, await provider.start())
  if (!mode.startsWith('in a terminal')) for (const name of expected.secrets) place.more[name] = SECRET
  const played = await play(mode, place, commandFor(definition, expected, [...model, ...yesIn(mode)]))

  const { printed, code, questions } = played
  const shown = `${printed}\nThe model got:\n${provider.results.join('\n')}`
  const calls = expected.steps.flat()
  expect(verdicts(calls, provider.results), shown).toEqual(calls.map(({ name }) => `${name}: as expected`))
  expect(code, shown).toBe(0)
  expect(questions, shown).toHaveLength(expected.asked)
  for (const words of expected.told) expect(unbroken(printed), printed).toContain(unbroken(words))
  expect(changesIn(place)).toEqual(changesOf(calls))
  checkAnswer(played, expected)
  expect(printed).not.toContain(SECRET)
  // What was killed may take a moment to be gone.
  await until('the end of its servers', () => serversOf(place).every(({ isAlive }) => !isAlive))
  checkEnd(place)
  return provider.requests
}

export function commandFor({ file, dialect }: Definition, { parameters }: Expectation, more: readonly string[]) {
  const asked = dialect === 'recipe' ? [] : [TASK]
  return ['run', file, ...asked, ...parameters.flatMap((word) => ['--param', word]), ...more]
}

/** A terminal breaks lines wherever they end. */
function unbroken(text: string): string {
  return text.replaceAll(/\s/g, '')
}

function yesIn(mode: Mode): readonly string[] {
  return mode.endsWith('--yes') ? ['--yes'] : []
}

function verdicts(calls: readonly Call[], results: readonly string[]): readonly string[] {
  return calls.map(({ name, gives }, at) => {
    const result = results[at] ?? 'nothing came back'
    return gives.test(result) ? `${name}: as expected` : `${name}: ${result}`
  })
}

/** The files that a tool which works has changed. */
interface Changes {
  readonly isMade: boolean
  readonly isEdited: boolean
  readonly isDeleted: boolean
}

function changesOf(calls: readonly Call[]): Changes {
  const works = (tool: string) => calls.some(({ name, gives }) => name === tool && !gives.test('not allowed'))
  return { isMade: works('write_file'), isEdited: works('edit_file'), isDeleted: works('delete_file') }
}

function changesIn({ folder }: Place): Changes {
  return {
    isMade: existsSync(path.join(folder, 'made.txt')),
    isEdited: readFileSync(path.join(folder, 'draft.txt'), 'utf8') === 'new words\n',
    isDeleted: !existsSync(path.join(folder, 'leftover.txt')),
  }
}

/** Nothing comes behind the answer, and in a pipe nothing else does. */
function checkAnswer({ stdout, printed }: Played, { output }: Expectation): void {
  if (output === null && stdout === null) return expect(printed.trimEnd().split('\n').at(-1)).toBe(ANSWER)
  if (output === null) return expect(stdout).toBe(`${ANSWER}\n`)
  const answer = JSON.stringify(output)
  if (stdout !== null) return expect(stdout).toBe(`${answer}\n`)
  expect(printed.replaceAll('\n', '').endsWith(answer)).toBe(true)
}

/** Whatever was started is over, and its record is whole. */
function checkEnd(place: Place): void {
  const runtime = place.runtime()
  const turns = localStore(runtime)
    .roots({ limit: 10 })
    .flatMap(({ id }) => localStore(runtime).turnsOf(id, { limit: 10 }))
  expect(turns.map(({ state, outcome }) => [state, outcome?.status])).toEqual([['ended', 'completed']])
  expect(localStore(runtime).openNodes(turns[0]?.id ?? '')).toEqual([])
}
