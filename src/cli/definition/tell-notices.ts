import type { AgentFile } from '../../recipe/index.ts'
import { noticeLine, noticeStyle } from '../notice-lines.ts'
import { painter } from '../terminal/paint.ts'
import { fromHere } from './refused.ts'

/** What was left out or tightened when a file was read: whoever runs it must know. */
export function tellNotices({ notices }: AgentFile, env: NodeJS.ProcessEnv): void {
  const style = noticeStyle(process.stderr, painter(process.stderr, env))
  for (const notice of notices) {
    if (notice.level !== 'note') process.stderr.write(noticeLine(notice, fromHere(notice.file), style))
  }
}
