"""Ids as types, so that a tenant can never be passed where a job is meant."""

from typing import NewType
from uuid import UUID

TenantId = NewType("TenantId", str)
JobId = NewType("JobId", UUID)
WorkerId = NewType("WorkerId", UUID)
LeaseToken = NewType("LeaseToken", UUID)
