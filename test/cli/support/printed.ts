import { execFileSync } from 'node:child_process'
import { optionsOf } from '../../../src/cli/command/command.ts'
import { COMMANDS } from '../../../src/cli/commands.ts'

const ID = /^[0-9a-f]{8}$/
const STAND_IN = /^[A-Z][A-Z-]*$/
/** What may follow a command in a sentence. */
const END = /[,.;:)]+$/

/** Finds the commands in a text for people, as somebody who copies them does: with their ids and options, and without the sentence around. */
export function commandsIn(text: string): string[] {
  return [...text.matchAll(/\blegate ([a-z]+)\b(.*)/g)].flatMap(([, name = '', rest = '']) => {
    const [before = '', ...others] = rest.split(/(?= legate )/)
    const command = commandOf(name, before)
    return [...(command === undefined ? [] : [command]), ...others.flatMap(commandsIn)]
  })
}

function commandOf(name: string, rest: string): string | undefined {
  const command = COMMANDS.find((one) => one.name === name)
  if (command === undefined) return undefined
  const options = new Map(optionsOf(command).map((one) => [`--${one.name}`, one.value !== undefined]))
  const words = [`legate ${name}`]
  let takesValue = false
  for (const raw of rest.match(/'[^']*'|\S+/g) ?? []) {
    const word = raw.replace(END, '')
    const isPart = takesValue || ID.test(word) || STAND_IN.test(word) || options.has(word) || /^-\w$/.test(word)
    if (!isPart) break
    takesValue = !takesValue && options.get(word) === true
    words.push(word)
    if (word !== raw) break
  }
  return words.join(' ')
}

/** The words of a command as a shell gives them to the program, with something in the place of what the person has to write. */
export function wordsOf(command: string, standIns: Readonly<Record<string, string>>): string[] {
  const out = execFileSync('bash', ['-c', `printf '%s\\0' ${command}`], { encoding: 'utf8' })
  const [, ...words] = out.split('\0').slice(0, -1)
  return words.map((word) => standIns[word] ?? word)
}
