import { EVERYTHING, type Grant } from '../../grant/grant.ts'
import type { Mode } from './spec.ts'

const CHANGES = ['file.write:**', 'file.delete:**', 'exec:*', 'net:*']

/**
 * How much an agent does without asking, as layers: `auto` adds nothing, `approve` asks for every tool, `smart_approve`
 * for what changes files, runs programs or reaches hosts, `chat` has no tools.
 */
export const MODES: Readonly<Record<Mode, Grant>> = Object.freeze({
  auto: { use: EVERYTHING },
  approve: { use: EVERYTHING, ask: ['tool:*', ...CHANGES] },
  smart_approve: { use: EVERYTHING, ask: CHANGES },
  chat: { use: ['model:*'] },
})
