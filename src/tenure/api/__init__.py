"""The HTTP surface: translates requests into calls of `Services`, and what they answer or raise into HTTP.

Nothing is decided here. Rooms below say who may do what and what an export is; this one knows headers and statuses.
"""
