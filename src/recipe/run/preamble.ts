import type { Told } from '../../agent/manner.ts'

/** What a child is told of itself, before what it has to do. */
export function childWords({ instructions, id, turns, tools }: Told, mayDelegate: boolean): string {
  const limits = [
    'Work on your own: nobody answers questions. Where something is unclear, take the plainest reading and say so.',
    `You have at most ${turns} turns, one for each answer of yours. Call tools only where they help, several at once where they do not depend on each other, and end before the turns do.`,
    mayDelegate ? '' : 'You cannot start subagents of your own.',
    'Write Markdown. If a summary is asked for, it is your last message.',
  ].filter((line) => line !== '')
  const shown = tools.length === 0 ? 'none' : tools.join(', ')
  return `You are a subagent: a specialised agent that does one task for another agent and reports to it.

${limits.map((line) => `- ${line}`).join('\n')}

Your id: ${id}
Your tools (${tools.length}): ${shown}

# Task instructions

${instructions === '' ? 'Do what the first message asks.' : instructions}`
}

/** The four duties of a last message that is all its reader gets. */
export const SUMMARY = `# Your last message

The agent that gave you this task receives only your last message, nothing else of your work. End with a summary that is complete but short:
1. what you were asked to do,
2. what you did,
3. what came of it,
4. findings and recommendations that matter.`

export function referenceWords(context: string): string {
  return `# Reference material

${context}`
}
