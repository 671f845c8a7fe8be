import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'

const root = path.resolve(import.meta.dirname, '..')
const FILE = 'bench/speed/limits.json'

interface Limits {
  /** Each begins with the name of a figure. */
  readonly reasons: readonly string[]
  /** By the version of Node, and by the name of the figure. */
  readonly limits: Readonly<Record<string, Readonly<Record<string, number>>>>
}

/** The limits as they are, and as the last commits that changed them left them; without a history, as they are. */
function versions(): readonly Limits[] {
  const now = readFileSync(path.join(root, FILE), 'utf8')
  const before = git('log', '--format=%H', '-n', '2', '--', FILE)
    .split('\n')
    .filter((commit) => commit !== '')
    .map((commit) => git('show', `${commit}:${FILE}`))
  return [now, ...before].map((text) => JSON.parse(text) as Limits)
}

function git(...args: readonly string[]): string {
  try {
    return execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  } catch {
    return ''
  }
}

/** The figures whose limits rose, and for which no reason is given that was not given before. */
function raisedInSilence(now: Limits, before: Limits): readonly string[] {
  const given = now.reasons.filter((reason) => !before.reasons.includes(reason))
  return Object.entries(now.limits).flatMap(([major, limits]) =>
    Object.entries(limits)
      .filter(([name, limit]) => limit > (before.limits[major]?.[name] ?? limit))
      .filter(([name]) => !given.some((reason) => reason.startsWith(`${name}: `)))
      .map(([name]) => `Node ${major}: ${name}`),
  )
}

test('a limit of what a delegation costs is raised with its reason', () => {
  const found = versions()
  for (const [at, before] of found.slice(1).entries()) {
    expect(raisedInSilence(found[at] as Limits, before)).toEqual([])
  }
})

test('a raised limit without a new reason of its own is found', () => {
  const before = { reasons: ['calls.w1: more'], limits: { 20: { 'calls.w1': 10, 'calls.w3': 50 } } }
  const raised = { ...before, limits: { 20: { 'calls.w1': 11, 'calls.w3': 40 }, 22: { 'calls.w1': 12 } } }
  expect(raisedInSilence(raised, before)).toEqual(['Node 20: calls.w1'])
  expect(raisedInSilence({ ...raised, reasons: ['calls.w3: less'] }, before)).toEqual(['Node 20: calls.w1'])
  expect(raisedInSilence({ ...raised, reasons: ['calls.w1: even more'] }, before)).toEqual([])
})
