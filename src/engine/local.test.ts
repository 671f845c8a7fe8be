import { test } from 'vitest'
import { engineConformance } from '../testing/conformance/engine-conformance.ts'
import { localEngine } from './local.ts'

engineConformance({ name: 'local engine', create: localEngine, test })
