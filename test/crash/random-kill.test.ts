import { useCounter } from './support/counter.ts'
import { randomKillSuite } from './support/suites/random-kill.ts'

randomKillSuite({ on: '', counter: await useCounter(), store: 'sqlite', isSample: false })
