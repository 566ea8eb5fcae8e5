"""Figures of running queries for Prometheus."""

from .connector.session.prometheus import PrometheusListener

__all__ = ["PrometheusListener"]
